import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { skillStates, type SkillState, type SkillVersion } from '../../../src/contract/skill.ts'
import { skills } from '../../../src/artifacts/kinds.ts'
import { MOST_VERSIONS } from '../../../src/artifacts/registry.ts'
import { readFeed } from '../../../src/store/artifacts/feed.ts'
import { contributors } from '../../support/artifact-contributors.ts'
import { freshId } from '../../support/reflexes.ts'
import { copyVersion, put, putVersion } from '../../support/skills.ts'

const versionsOf = async (id: string) => (await skills.versions(env.DB, id)).map(({ version, state }) => `${version} ${state}`)
const setTo = (state: SkillState, { id, version }: { id: string; version: string }, now = 9) =>
  skills.setState(env.DB, { id, version, state, reason: 'because', now })

describe('a version', () => {
  test('is a candidate, and is found as it was put', async () => {
    const version = await putVersion({ now: 5 })
    expect(version).toMatchObject({ owner: 'alice', scopes: ['*'], state: 'candidate', state_reason: null, state_at: 5, created_at: 5 })
    expect(version.manifest).toMatchObject({ id: version.id, version: '1.3.0', activation: { max_concurrency: 3 } })
    expect(await skills.find(env.DB, version.id, '1.3.0')).toEqual(version)
    expect(await skills.find(env.DB, version.id, '1.3.1')).toBeNull()
    expect(await skills.find(env.DB, freshId())).toBeNull()
  })

  test('with the same content again stays as it is; other content is refused', async () => {
    const id = freshId('skill')
    const first = await putVersion({ changes: { id }, now: 5 })
    expect(await put({ changes: { id }, now: 6 })).toEqual({ ok: true, created: false, version: first })
    const refused = await put({ changes: { id, description: 'other' } })
    expect(refused).toMatchObject({ ok: false, reason: 'other_content', detail: expect.stringContaining(`${id}@1.3.0`) })
    expect(await skills.find(env.DB, id)).toEqual(first)
    expect(await put({ changes: { id, description: 'other', version: '1.3.1' } })).toMatchObject({ ok: true, created: true })
  })

  test('that comes at once with different contents is one of them', async () => {
    const id = freshId('skill')
    const all = await Promise.all(Array.from({ length: 8 }, (_, index) => put({ changes: { id, description: `number ${index}` } })))
    expect(all.filter((one) => one.ok && one.created)).toHaveLength(1)
    expect(all.filter((one) => !one.ok && one.reason === 'other_content')).toHaveLength(7)
    const taken = all.findIndex(({ ok }) => ok)
    expect((await skills.find(env.DB, id))?.manifest.description).toBe(`number ${taken}`)
  })

  test('that comes at once with the same content is created once', async () => {
    const id = freshId('skill')
    const all = await Promise.all(Array.from({ length: 8 }, () => put({ changes: { id } })))
    expect(all.map((one) => one.ok && one.created).filter(Boolean)).toHaveLength(1)
    expect(all.every(({ ok }) => ok)).toBe(true)
  })

  test('of a new id belongs to one owner, whoever comes at once', async () => {
    const id = freshId('skill')
    const owners = ['alice', 'bob', 'carol']
    const all = await Promise.all(owners.map((owner, index) => put({ owner, owner_id: owner, changes: { id, version: `1.0.${index}` } })))
    expect(all.filter((one) => !one.ok && one.reason === 'not_owner')).toHaveLength(2)
    expect(await versionsOf(id)).toHaveLength(1)
  })

  test.each(contributors)('is added by %s or not', async (_who, fields, ok) => {
    const { id } = await putVersion({ scopes: ['team-a/*'] })
    const added = await put({ changes: { id, version: '2.0.0' }, scopes: ['team-a/*'], ...fields })
    expect(added.ok).toBe(ok)
    expect(await versionsOf(id)).toHaveLength(ok ? 2 : 1)
    expect(await skills.find(env.DB, id)).toMatchObject({ owner: 'alice', scopes: ['team-a/*'] })
  })

  test('finds no room beside a thousand others', async () => {
    const { id } = await putVersion()
    await copyVersion({ id }, MOST_VERSIONS - 1)
    expect(await put({ changes: { id } })).toMatchObject({ ok: true, created: false })
    expect(await put({ changes: { id, version: '2.0.0' } })).toMatchObject({ ok: false, reason: 'too_many_versions' })
  })
})

describe('the active skills of one owner', () => {
  const activate = ({ id, version }: { id: string; version: string }, quota: { versions: number; bytes: number }) =>
    skills.setState(env.DB, { id, version, state: 'active', reason: null, now: 9, quota })

  test('is limited in number, over all skills, and what was deprecated makes room', async () => {
    const owner = freshId('owner')
    const quota = { versions: 2, bytes: 1_000_000 }
    const [one, two, three] = [
      await putVersion({ owner_id: owner }),
      await putVersion({ owner_id: owner }),
      await putVersion({ owner_id: owner }),
    ]
    expect([await activate(one, quota), await activate(two, quota)]).toMatchObject([{ ok: true }, { ok: true }])
    const refused = await activate(three, quota)
    expect(refused).toMatchObject({ ok: false, reason: 'too_many_active', detail: expect.stringContaining('Deprecate one') })
    expect(await activate(await putVersion({ owner_id: freshId('owner') }), quota)).toMatchObject({ ok: true })
    await setTo('deprecated', one)
    expect(await activate(three, quota)).toMatchObject({ ok: true })
  })

  test('is limited in bytes', async () => {
    const owner = freshId('owner')
    const one = await putVersion({ owner_id: owner })
    const two = await putVersion({ owner_id: owner })
    const bytes = JSON.stringify(one.manifest).length + JSON.stringify(two.manifest).length
    expect(await activate(one, { versions: 9, bytes: bytes - 1 })).toMatchObject({ ok: true })
    expect(await activate(two, { versions: 9, bytes: bytes - 1 })).toMatchObject({ ok: false, reason: 'too_many_active' })
    expect(await activate(two, { versions: 9, bytes })).toMatchObject({ ok: true })
  })
})

describe('versions', () => {
  test('are in the order of semantic versions, whenever they came', async () => {
    const id = freshId('skill')
    for (const version of ['1.10.0', '1.9.0', '1.10.0-rc.2', '1.10.0-rc.10']) await putVersion({ changes: { id, version } })
    expect(await versionsOf(id)).toEqual(['1.10.0 candidate', '1.10.0-rc.10 candidate', '1.10.0-rc.2 candidate', '1.9.0 candidate'])
  })

  test.each<[Record<string, SkillState>, string]>([
    [{ '1.9.0': 'candidate', '1.10.0': 'candidate' }, '1.10.0'],
    [{ '1.9.0': 'active', '1.10.0': 'candidate' }, '1.9.0'],
    [{ '1.9.0': 'active', '1.10.0': 'active', '1.11.0': 'deprecated' }, '1.10.0'],
    [{ '1.9.0': 'deprecated', '1.10.0': 'deprecated' }, '1.10.0'],
  ])('%j stand for %s where none is named', async (states, expected) => {
    const id = freshId('skill')
    for (const [version, state] of Object.entries(states)) await putVersion({ changes: { id, version }, state })
    expect(await skills.find(env.DB, id)).toMatchObject({ version: expected })
    expect((await skills.list(env.DB, { key_scopes: ['*'], q: id, limit: 5 })).items).toMatchObject([{ id, version: expected }])
  })
})

describe('a state', () => {
  const allowed = ['candidate active', 'candidate deprecated', 'active deprecated', 'deprecated active']
  const pairs = skillStates.flatMap((from) => skillStates.map((to): [SkillState, SkillState] => [from, to]))

  const mayFollow = (from: SkillState, to: SkillState) => allowed.includes(`${from} ${to}`)

  test.each(pairs.filter(([from, to]) => mayFollow(from, to)))('%s becomes %s', async (from, to) => {
    const before = await putVersion({ state: from })
    const after = { ...before, state: to, state_reason: 'because', state_at: 9 }
    expect(await setTo(to, before)).toEqual({ ok: true, version: after })
    expect(await skills.find(env.DB, before.id)).toEqual(after)
  })

  test.each(skillStates)('%s stays as it is where it is that already', async (state) => {
    const before = await putVersion({ state })
    expect(await setTo(state, before)).toEqual({ ok: true, version: before })
  })

  test.each(pairs.filter(([from, to]) => from !== to && !mayFollow(from, to)))('%s never becomes %s', async (from, to) => {
    const before = await putVersion({ state: from })
    const next = allowed.filter((pair) => pair.startsWith(from)).map((pair) => pair.split(' ')[1])
    const refused = await setTo(to, before)
    expect(refused).toMatchObject({ ok: false, reason: 'not_allowed', detail: expect.stringContaining(next.join(' or ')) })
    expect(await skills.find(env.DB, before.id)).toEqual(before)
  })

  test('is that of one version, and of none that is not there', async () => {
    const one = await putVersion()
    const other = await putVersion({ changes: { id: one.id, version: '2.0.0' } })
    await setTo('active', one)
    expect(await versionsOf(one.id)).toEqual(['2.0.0 candidate', '1.3.0 active'])
    expect(await setTo('active', { ...other, version: '3.0.0' })).toMatchObject({ ok: false, reason: 'not_found' })
  })
})

/** The number of rows that each statement read, `batch` included. */
function countingReads(db: D1Database, read: number[]): D1Database {
  const keep = <Result extends { meta: { rows_read: number } }>(result: Result): Result => {
    read.push(result.meta.rows_read)
    return result
  }
  const counted = (statement: D1PreparedStatement): D1PreparedStatement =>
    new Proxy(statement, {
      get: (target, name) => {
        if (name === 'bind') return (...values: unknown[]) => counted(target.bind(...values))
        // Without names of columns, as drizzle reads rows.
        if (name === 'raw') return async () => keep(await target.all()).results.map((row) => Object.values(row))
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  return {
    prepare: (sql: string) => counted(db.prepare(sql)),
    batch: async (statements: D1PreparedStatement[]) => (await db.batch(statements)).map(keep),
  } as unknown as D1Database
}

describe('a list', () => {
  test('has one version of each, by id, page by page', async () => {
    const mark = freshId('list')
    const ids = ['a', 'b', 'c', 'd', 'e'].map((letter) => `${mark}.${letter}`)
    for (const id of ids) await putVersion({ changes: { id }, state: id.endsWith('c') ? 'active' : 'candidate' })
    await putVersion({ changes: { id: `${mark}.c`, version: '2.0.0' } })
    const seen: string[] = []
    let cursor: string | null | undefined
    for (let pages = 0; pages < 9 && cursor !== null; pages += 1) {
      const page: Awaited<ReturnType<typeof skills.list>> = await skills.list(env.DB, { key_scopes: ['*'], q: mark, limit: 2, cursor })
      expect(page.items.length).toBeLessThanOrEqual(2)
      seen.push(...page.items.map(({ id, version }) => `${id}@${version}`))
      cursor = page.next_cursor
    }
    expect(seen).toEqual(ids.map((id) => `${id}@1.3.0`))
    const inState = async (state: SkillState) =>
      (await skills.list(env.DB, { key_scopes: ['*'], q: mark, state, limit: 9 })).items.map(({ id, version }) => `${id}@${version}`)
    expect(await inState('active')).toEqual([`${mark}.c@1.3.0`])
    expect(await inState('candidate')).toEqual(ids.map((id) => `${id}@${id.endsWith('c') ? '2.0.0' : '1.3.0'}`))
    expect(await inState('deprecated')).toEqual([])
  })

  test('is searched in ids and descriptions, case-insensitively', async () => {
    const mark = crypto.randomUUID()
    const { id } = await putVersion({ changes: { description: `Does ${mark.toUpperCase()} well` } })
    const found = async (q: string) => (await skills.list(env.DB, { key_scopes: ['*'], q, limit: 9 })).items
    expect(await found(mark)).toMatchObject([{ id, description: `Does ${mark.toUpperCase()} well` }])
    expect(await found(id.toUpperCase())).toMatchObject([{ id }])
    expect(await found(`${mark}!`)).toEqual([])
    expect(Object.keys((await found(mark))[0] ?? {})).not.toContain('manifest')
  })
})

describe('the active skills', () => {
  const changesSince = async (since_revision: number, scope = 'default', limit = 50) => {
    const page = await readFeed(env.DB, { kind: 'skill', scope }, since_revision, limit)
    const changes = page.changes.map(({ id, version, artifact }) => {
      const manifest: SkillVersion['manifest'] | null = artifact && JSON.parse(artifact.content)
      return { id, version, hash: artifact?.hash ?? null, manifest }
    })
    return { ...page, changes }
  }
  const newest = async (): Promise<number> => {
    let { revision, more } = await changesSince(0, 'default', 1000)
    while (more) ({ revision, more } = await changesSince(revision, 'default', 1000))
    return revision
  }
  const told = ({ changes }: Awaited<ReturnType<typeof changesSince>>) =>
    changes.map(({ id, version, manifest }) => `${id}@${version} ${manifest === null ? 'ended' : manifest.version}`)

  test('change with what becomes active and what ceases to be, and with nothing else', async () => {
    const before = await newest()
    const one = await putVersion()
    expect(await changesSince(before)).toEqual({ changes: [], revision: before, more: false })
    await setTo('active', one)
    const after = await changesSince(before)
    expect(after).toEqual({
      changes: [{ id: one.id, version: '1.3.0', hash: one.hash, manifest: one.manifest }],
      revision: before + 1,
      more: false,
    })
    await setTo('active', one)
    expect(await changesSince(after.revision)).toMatchObject({ changes: [], revision: after.revision })
    await setTo('deprecated', one)
    expect(told(await changesSince(after.revision))).toEqual([`${one.id}@1.3.0 ended`])
    // A version that the copy never had arrives once, without its manifest.
    expect(told(await changesSince(before))).toEqual([`${one.id}@1.3.0 ended`])
  })

  test('come in pages, and one that changes meanwhile comes again at the end', async () => {
    const before = await newest()
    const [a, b, c] = [await putVersion({ state: 'active' }), await putVersion({ state: 'active' }), await putVersion({ state: 'active' })]
    const first = await changesSince(before, 'default', 2)
    expect([told(first), first.more]).toEqual([[`${a.id}@1.3.0 1.3.0`, `${b.id}@1.3.0 1.3.0`], true])
    await setTo('deprecated', a)
    const second = await changesSince(first.revision, 'default', 2)
    expect([told(second), second.more]).toEqual([[`${c.id}@1.3.0 1.3.0`, `${a.id}@1.3.0 ended`], false])
  })

  test('are read without the rows of other owners', async () => {
    const before = await newest()
    const mine = await putVersion({ scopes: ['team-a/*'], state: 'active' })
    await copyVersion(await putVersion({ scopes: ['team-b/*'], state: 'active' }), 200)
    const read: number[] = []
    const DB = countingReads(env.DB, read)
    const { changes } = await readFeed(DB, { kind: 'skill', scope: 'team-a/x' }, before)
    expect(changes.map(({ id }) => id)).toEqual([mine.id])
    expect(Math.max(...read)).toBeLessThan(100)
    read.length = 0
    await readFeed(DB, { kind: 'skill', scope: 'team-a/x' }, before + 202)
    expect(read).toEqual([1])
  })

  test('come again if the registry is older than the copy', async () => {
    const one = await putVersion({ scopes: ['restored'], state: 'active' })
    const answer = await changesSince(1_000_000_000, 'restored')
    expect(answer).toMatchObject({ restart: true, revision: await newest() })
    expect(answer.changes.map(({ id }) => id)).toContain(one.id)
  })

  test('have a revision of their own each, whoever changes at once', async () => {
    const before = await newest()
    const versions = await Promise.all(Array.from({ length: 6 }, () => putVersion()))
    await Promise.all(versions.map((version) => setTo('active', version)))
    const { changes, revision } = await changesSince(before)
    expect([changes.length, revision]).toEqual([6, before + 6])
  })

  test('are those whose owner covers the scope', async () => {
    const before = await newest()
    const mine = await putVersion({ scopes: ['team-a/*'], state: 'active' })
    await putVersion({ scopes: ['team-b/*', 'c'], state: 'active' })
    const { changes, revision } = await changesSince(before, 'team-a/x')
    expect([changes.map(({ id }) => id), revision]).toEqual([[mine.id], before + 2])
    expect((await changesSince(before, 'c')).changes).toHaveLength(1)
    expect((await changesSince(before, 'default')).changes).toEqual([])
  })
})
