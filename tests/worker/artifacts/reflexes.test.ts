import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import type { ReflexState, ReflexVersion } from '../../../src/contract/reflex.ts'
import { emptyMetrics } from '../../../src/reflexes/metrics.ts'
import { reflexes } from '../../../src/artifacts/kinds.ts'
import { MOST_VERSIONS } from '../../../src/artifacts/registry.ts'
import { readFeed, scopesUsing, setUses } from '../../../src/store/artifacts/feed.ts'
import { precedenceOfCount } from '../../../src/contract/artifact.ts'
import { selectReferenced } from '../../../src/store/artifacts/artifacts.ts'
import { forgetReflexMetrics, metricsOf, sortReflexMetrics, tellReflexMetrics } from '../../../src/store/artifacts/reflex-metrics.ts'
import { contributors } from '../../support/artifact-contributors.ts'
import { create, createVersion, freshId, replying } from '../../support/reflexes.ts'
import { freshScope } from '../../support/scopes.ts'

async function setState(change: Parameters<typeof reflexes.setState>[1]): Promise<ReflexVersion | null> {
  const changed = await reflexes.setState(env.DB, change)
  return changed.ok ? changed.version : null
}

describe('versions', () => {
  test('count up, and each stays what it is', async () => {
    const first = await createVersion({ code: replying('one') })
    const second = await createVersion({ id: first.id, code: replying('two'), now: 2 })
    expect([first.version, second.version]).toEqual([1, 2])
    expect(await reflexes.find(env.DB, first.id, 1)).toEqual(first)
    expect(await reflexes.find(env.DB, first.id)).toEqual(second)
    expect(await reflexes.find(env.DB, first.id, 3)).toBeNull()
    expect((await reflexes.versions(env.DB, first.id)).map(({ version, hash }) => [version, hash])).toEqual([
      [2, second.hash],
      [1, first.hash],
    ])
  })

  test.each<[string, object, boolean]>([
    ['the same again', {}, false],
    ['another description', { description: 'other' }, true],
    ['another code', { code: replying('other') }, true],
  ])('%s is a new one only if something changed', async (_what, fields, created) => {
    const { id } = await createVersion()
    expect(await create({ id, ...fields })).toMatchObject({ ok: true, created, version: { version: created ? 2 : 1 } })
  })

  test('may go back to an earlier code', async () => {
    const { id } = await createVersion({ code: replying('one') })
    await createVersion({ id, code: replying('two') })
    expect(await create({ id, code: replying('one') })).toMatchObject({ ok: true, created: true, version: { version: 3 } })
  })

  test('that are written at once get numbers of their own', async () => {
    const id = freshId()
    const all = await Promise.all(Array.from({ length: 20 }, (_, index) => create({ id, code: replying(String(index)) })))
    const numbers = all.map((created) => (created.ok ? created.version.version : 0)).sort((one, other) => one - other)
    expect((await reflexes.versions(env.DB, id)).map(({ version }) => version)).toEqual(
      Array.from({ length: 20 }, (_, index) => 20 - index),
    )
    // Each call sees the newest version at the end of its own transaction: its own.
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
  })

  test('of one new id belong to one owner, whoever comes at once', async () => {
    const id = freshId()
    const owners = ['alice', 'bob', 'carol']
    const all = await Promise.all(owners.map((owner) => create({ id, owner_id: owner, owner, code: replying(owner) })))
    const refusals = all.filter(({ ok }) => !ok)
    expect(refusals).toHaveLength(2)
    for (const refused of refusals) expect(refused).toMatchObject({ reason: 'not_owner', detail: expect.stringContaining(id) })
    expect(await reflexes.versions(env.DB, id)).toHaveLength(1)
  })

  test.each(contributors)('are added by %s or not', async (_who, fields, ok) => {
    const { id } = await createVersion({ scopes: ['team-a/*'] })
    const added = await create({ id, code: replying('two'), scopes: ['team-a/*'], ...fields })
    expect(added.ok).toBe(ok)
    expect(await reflexes.find(env.DB, id)).toMatchObject({ version: ok ? 2 : 1, owner: 'alice', scopes: ['team-a/*'] })
  })

  test('come to an end', async () => {
    const { id } = await createVersion()
    const update = 'UPDATE artifact_versions SET version = ?, precedence = ? WHERE id = ?'
    await env.DB.prepare(update).bind(String(MOST_VERSIONS), precedenceOfCount(MOST_VERSIONS), id).run()
    expect(await create({ id })).toMatchObject({ ok: true, created: false })
    expect(await create({ id, code: replying('two') })).toMatchObject({ ok: false, reason: 'too_many_versions' })
  })

  test('change their state and nothing else', async () => {
    const before = await createVersion({ state: 'draft' })
    await createVersion({ id: before.id, code: replying('two') })
    const changed = await setState({ id: before.id, version: 1, state: 'shadow', reason: 'a try', now: 7 })
    expect(changed).toEqual({ ...before, state: 'shadow', state_reason: 'a try' })
    expect(await reflexes.versions(env.DB, before.id)).toMatchObject([
      { version: 2, state: 'active', state_at: 1 },
      { version: 1, state: 'shadow', state_at: 7 },
    ])
    expect(await setState({ id: before.id, version: 3, state: 'shadow', reason: null, now: 7 })).toBeNull()
  })
})

const resolveReflexes = async (references: { id: string; version?: number }[]): Promise<ReflexVersion[]> =>
  (await selectReferenced(env.DB, 'reflex', references)).map((row) => reflexes.present(row))

describe('a reference', () => {
  const withStates = async (...states: ReflexState[]): Promise<string> => {
    const id = freshId()
    for (const [index, state] of states.entries()) await createVersion({ id, code: replying(String(index)), state })
    return id
  }
  const resolved = async (...references: { id: string; version?: number }[]) =>
    (await resolveReflexes(references)).map(({ version }) => version).sort((one, other) => one - other)

  test.each<[ReflexState[], number[]]>([
    [['active'], [1]],
    [['active', 'active'], [2]],
    [['active', 'draft', 'retired'], [1]],
    [
      ['active', 'shadow'],
      [1, 2],
    ],
    [
      ['active', 'shadow', 'shadow'],
      [1, 3],
    ],
    [['shadow', 'active'], [2]],
    [['shadow'], [1]],
    [['shadow', 'retired'], [1]],
    [['draft', 'retired'], []],
  ])('to versions in the states %j stands for %j', async (states, expected) => {
    expect(await resolved({ id: await withStates(...states) })).toEqual(expected)
  })

  test('with a version stands for that one, in whatever state', async () => {
    const id = await withStates('retired', 'active', 'draft')
    expect(await resolved({ id, version: 1 })).toEqual([1])
    expect(await resolved({ id, version: 3 })).toEqual([3])
    expect(await resolved({ id, version: 4 })).toEqual([])
  })

  test('beside others, or given twice, stands for itself once', async () => {
    const [one, other] = [await withStates('active', 'active'), await withStates('active')]
    expect(
      await resolved({ id: one }, { id: one }, { id: one, version: 2 }, { id: one, version: 1 }, { id: other }, { id: 'none' }),
    ).toEqual([1, 1, 2])
    expect(await resolved()).toEqual([])
  })

  test('brings the whole version', async () => {
    const version = await createVersion({ scopes: ['team-a/*'], description: 'd' })
    expect(await resolveReflexes([{ id: version.id }])).toEqual([version])
  })
})

describe('the feed of a chain', () => {
  const feed = (since: number, ...references: { id: string; version?: number }[]) =>
    readFeed(env.DB, { kind: 'reflex', scope: 'team-a/x', references }, since)

  test('has all versions that it refers to, as soon as one of its reflexes changes', async () => {
    const [one, other] = [await createVersion(), await createVersion()]
    const first = await feed(0, one, { id: other.id, version: 1 })
    expect(first).toMatchObject({ whole: true, more: false })
    expect(first.changes.map(({ id }) => id).toSorted()).toEqual([one.id, other.id].toSorted())
    await createVersion()
    const unchanged = await feed(first.revision, one, other)
    expect(unchanged).toEqual({ changes: [], revision: first.revision + 1, more: false })
    await setState({ id: one.id, version: 1, state: 'retired', reason: null, now: 3 })
    const { changes, whole } = await feed(unchanged.revision, { id: one.id }, { id: other.id })
    expect([whole, changes.map(({ id }) => id)]).toEqual([true, [other.id]])
  })

  test('has nothing where no version is left', async () => {
    const { id } = await createVersion({ state: 'draft' })
    expect(await feed(0, { id })).toMatchObject({ whole: true, changes: [] })
  })
})

describe('the metrics that scopes report', () => {
  test('replaces the uses of that scope', async () => {
    const [a, b, c] = [freshId(), freshId(), freshId()]
    const [one, other] = [freshScope('a'), freshScope('b')]
    await setUses(env.DB, one, [a, b, b])
    await setUses(env.DB, other, [b])
    expect(await scopesUsing(env.DB, b, 10)).toEqual([one, other])
    await setUses(env.DB, one, [c, a])
    expect([await scopesUsing(env.DB, a, 10), await scopesUsing(env.DB, b, 10), await scopesUsing(env.DB, c, 10)]).toEqual([
      [one],
      [other],
      [one],
    ])
    await setUses(env.DB, one, [])
    expect(await scopesUsing(env.DB, a, 10)).toEqual([])
    await setUses(env.DB, one, [b])
    expect(await scopesUsing(env.DB, b, 1)).toEqual([one])
  })

  test('replaces its metrics, unless it comes late', async () => {
    const reflex_id = freshId()
    const metrics = (runs: number) => ({ ...emptyMetrics(), runs })
    const tell = (runs: number, now: number, scope = 'a') =>
      tellReflexMetrics(env.DB, { scope, seq: now, now }, [{ reflex_id, version: 1, metrics: metrics(runs) }])
    await tell(5, 10)
    await tell(3, 9)
    await tell(1, 10, 'b')
    expect(await metricsOf(env.DB, reflex_id)).toEqual(
      expect.arrayContaining([
        { version: 1, scope: 'a', metrics: metrics(5) },
        { version: 1, scope: 'b', metrics: metrics(1) },
      ]),
    )
    await tell(6, 10)
    expect((await metricsOf(env.DB, reflex_id)).find(({ scope }) => scope === 'a')?.metrics.runs).toBe(6)
    const writtenAt = () =>
      env.DB.prepare(`SELECT updated_at FROM reflex_metrics WHERE reflex_id = ? AND scope = 'a'`).bind(reflex_id).first('updated_at')
    // A scope reports all of them again whenever it wakes.
    await tell(6, 11)
    expect(await writtenAt()).toBe(10)
    await tellReflexMetrics(env.DB, { scope: 'a', seq: 11, now: 11 }, [])
    expect(await metricsOf(env.DB, freshId())).toEqual([])
  })

  describe('answers its metrics', () => {
    const metrics = (runs: number) => ({ ...emptyMetrics(), runs })
    const answer = (reflex_id: string, scope: string, seq: number, runs: number) => ({
      scope,
      seq,
      reports: [{ reflex_id, version: 1, metrics: metrics(runs) }],
    })
    const sort = (now: number, ...answers: object[]) => sortReflexMetrics(env.DB, answers, now)
    const runsOf = async (reflex_id: string) =>
      Object.fromEntries((await metricsOf(env.DB, reflex_id)).map(({ scope, metrics: { runs } }) => [scope, runs]))
    const rowsOf = (table: string, reflex_id: string) =>
      env.DB.prepare(`SELECT count(*) AS n FROM ${table} WHERE reflex_id = ?`).bind(reflex_id).first<number>('n')

    test('for a row that many scopes share, whose newest counts', async () => {
      const reflex_id = freshId()
      await sort(10, answer(reflex_id, 'a', 4, 2), answer(reflex_id, 'a', 2, 1), answer(reflex_id, 'b', 1, 7))
      await sort(11, answer(reflex_id, 'a', 3, 9), { scope: 'c', reports: [{}] })
      expect(await runsOf(reflex_id)).toEqual({ a: 2, b: 7 })
      expect([await rowsOf('reflex_metrics_packs', reflex_id), await rowsOf('reflex_metrics', reflex_id)]).toEqual([1, 0])
      expect(await metricsOf(env.DB, `${reflex_id}-other`)).toEqual([])
    })

    test('which a row of its own hides, such as one of an earlier version, until newer ones are answered', async () => {
      const reflex_id = freshId()
      await env.DB.prepare('INSERT INTO reflex_metrics (reflex_id, version, scope, metrics, updated_at) VALUES (?, 1, ?, ?, 1)')
        .bind(reflex_id, 'a', JSON.stringify(metrics(3)))
        .run()
      await sort(10, answer(reflex_id, 'b', 1, 7))
      expect(await runsOf(reflex_id)).toEqual({ a: 3, b: 7 })
      await sort(11, answer(reflex_id, 'a', 5, 4))
      expect([await runsOf(reflex_id), await rowsOf('reflex_metrics', reflex_id)]).toEqual([{ a: 4, b: 7 }, 0])
      await tellReflexMetrics(env.DB, { scope: 'a', seq: 8, now: 12 }, answer(reflex_id, 'a', 8, 6).reports)
      await sort(13, answer(reflex_id, 'a', 7, 5))
      expect(await runsOf(reflex_id)).toEqual({ a: 6, b: 7 })
    })

    test('which a row of its own that D1 writes later than newer ones does not hide', async () => {
      const reflex_id = freshId()
      const tell = (seq: number, runs: number) =>
        tellReflexMetrics(env.DB, { scope: 'a', seq, now: 20 }, answer(reflex_id, 'a', seq, runs).reports)
      await sort(10, answer(reflex_id, 'a', 8, 6), answer(reflex_id, 'b', 1, 7))
      await tell(5, 4)
      expect(await runsOf(reflex_id)).toEqual({ a: 6, b: 7 })
      await tell(9, 8)
      expect(await runsOf(reflex_id)).toEqual({ a: 8, b: 7 })
    })

    test('which are forgotten a year later: one by one where others still answer, and else with their row', async () => {
      const reflex_id = freshId()
      const year = 366 * 86_400_000
      await sort(10, answer(reflex_id, 'a', 1, 1), answer(reflex_id, 'b', 1, 1))
      await sort(10 + year, answer(reflex_id, 'b', 2, 2))
      expect(await runsOf(reflex_id)).toEqual({ b: 2 })
      const forget = async (before: number) => {
        while ((await forgetReflexMetrics(env.DB, before, 100)) > 0);
      }
      await forget(10 + year)
      expect(await runsOf(reflex_id)).toEqual({ b: 2 })
      await forget(11 + year)
      expect(await runsOf(reflex_id)).toEqual({})
    })
  })
})
