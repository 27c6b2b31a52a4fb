import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { hashJson } from '../../../src/base/json.ts'
import { skills } from '../../../src/artifacts/kinds.ts'
import { insertPromotion } from '../../../src/store/artifacts/promotions.ts'
import { call, keyFor, problem, type Answer } from '../../support/http.ts'
import { freshId } from '../../support/reflexes.ts'
import { putVersion } from '../../support/skills.ts'

const toState = (state: 'active' | 'deprecated', { id, version }: { id: string; version: string }) =>
  skills.setState(env.DB, { id, version, state, reason: null, now: 9 })

describe('the check of a policy', () => {
  type Asked = { id: string; version?: string; key?: string } & Record<string, unknown>
  const ask = ({ id, version = '1.3.0', key, ...more }: Asked): Promise<Answer> =>
    call('/v1/policy/check', {
      json: { skill_id: id, version, project: 'reflex-demo', env: 'dev', roles: ['dev'], ...more },
      ...(key === undefined ? {} : { key }),
    })
  const places = { 'compat.env': ['dev', 'staging', 'prod'], 'compat.project': 'reflex-demo', 'policy.allow_roles': ['dev'] }

  test('allows an active version in an open environment, and elsewhere after a promotion of that version', async () => {
    const { id, hash } = await putVersion({ state: 'active', changes: places })
    expect(await ask({ id })).toMatchObject({ status: 200, body: { verdict: 'allow' } })
    const elsewhere = { verdict: 'needs_promotion', reason: expect.stringContaining('has not been promoted to staging') }
    expect((await ask({ id, env: 'staging' })).body).toEqual(elsewhere)
    const decided = { requested_by: 'a', requested_key: 'a', request_reason: null, created_at: 1, expires_at: 2 }
    const of = { skill_id: id, hash, from_env: 'dev', to_env: ['staging'], reports: {} }
    await insertPromotion(env.DB, { id: freshId(), ...of, version: '1.2.0', status: 'pending', ...decided })
    await insertPromotion(env.DB, { id: freshId(), ...of, version: '1.3.0', status: 'pending', ...decided })
    expect((await ask({ id, env: 'staging' })).body).toEqual(elsewhere)
    await env.DB.prepare(`UPDATE promotions SET status = 'approved' WHERE skill_id = ?`).bind(id).run()
    expect((await ask({ id, env: 'staging' })).body).toMatchObject({ verdict: 'allow' })
    expect((await ask({ id, env: ['dev', 'staging'] })).body).toMatchObject({ verdict: 'allow' })
    expect((await ask({ id, env: ['dev', 'prod'] })).body).toMatchObject({ verdict: 'needs_promotion' })
  })

  test.each([
    ['another role', { roles: ['guest'] }, 'role'],
    ['an environment that the skill is not for', { env: 'moon' }, 'compat.env'],
    ['another project', { project: 'other' }, 'compat.project'],
    ['no project', { project: null }, 'compat.project'],
  ])('denies %s', async (_name, asked, reason) => {
    const { id } = await putVersion({ state: 'active', changes: places })
    expect((await ask({ id, ...asked })).body).toEqual({ verdict: 'deny', reason: expect.stringContaining(reason) })
  })

  test('denies a deprecated version, and asks for the promotion of a candidate', async () => {
    const version = await putVersion({ changes: places })
    expect((await ask({ id: version.id })).body).toMatchObject({ verdict: 'needs_promotion' })
    await toState('deprecated', version)
    expect((await ask({ id: version.id })).body).toMatchObject({ verdict: 'deny' })
  })

  test('evaluates the conditions that read only the given inputs', async () => {
    const changes = { ...places, 'policy.deny_if': ['inputs.image_tag == "latest"', 'ctx.repo == "x"'] }
    const { id } = await putVersion({ state: 'active', changes })
    expect((await ask({ id })).body).toMatchObject({ verdict: 'allow' })
    expect((await ask({ id, inputs: { image_tag: 'v1' } })).body).toMatchObject({ verdict: 'allow' })
    expect((await ask({ id, inputs: { image_tag: 'latest' } })).body).toEqual({
      verdict: 'deny',
      reason: expect.stringContaining('latest'),
    })
  })

  test('treats a skill that the key may not read as an unknown one', async () => {
    const { id } = await putVersion({
      state: 'active',
      scopes: ['team-b/*'],
      owner_id: freshId(),
      changes: { ...places, scope: 'project' },
    })
    const key = await keyFor(['viewer'], ['team-a/*'])
    const [hidden, unknown] = [await ask({ id, key, env: 'staging' }), await ask({ id: 'no.such', key, env: 'staging' })]
    expect(hidden.text).toBe(unknown.text.replaceAll('no.such', id))
    expect(hidden.body).toMatchObject({ verdict: 'needs_promotion' })
    expect((await ask({ id, key })).body).toMatchObject({ verdict: 'allow', reason: expect.stringContaining('does not know') })
  })

  test.each([{ env: [] }, { env: '' }, { roles: 'dev' }, { version: 7 }, { more: 1 }])('refuses %j', async (changes) => {
    const json = { skill_id: 'a', version: '1.0.0', env: 'dev', roles: [], ...changes }
    expect(await call('/v1/policy/check', { json })).toMatchObject(problem(400))
  })
})

describe('the feed of skills', () => {
  type Item = { id: string; version: string; hash: string; manifest: { version: string } | null }
  const read = async (since: number, { project, key }: { project?: string; key?: string } = {}) => {
    const items: Item[] = []
    for (let at = since; ;) {
      const query = `since=${at}${project === undefined ? '' : `&project=${project}`}`
      const { body } = await call(`/v1/skills/sync?${query}`, key === undefined ? {} : { key })
      items.push(...body.items)
      at = body.revision
      if (!body.more) return { items, revision: at }
    }
  }

  test('has what became active or ceased to be, and the hash of each manifest', async () => {
    const { revision } = await read(0)
    await putVersion()
    const version = await putVersion({ state: 'active' })
    const first = await read(revision)
    expect(first.items).toMatchObject([{ id: version.id, version: '1.3.0', manifest: { id: version.id } }])
    expect(first.items[0]?.hash).toBe(await hashJson(first.items[0]?.manifest))
    await toState('deprecated', version)
    const next = await read(first.revision)
    expect(next.items).toEqual([{ id: version.id, version: '1.3.0', hash: version.hash, manifest: null }])
    expect(await read(next.revision)).toEqual({ items: [], revision: next.revision })
  })

  test('comes in pages without a gap', async () => {
    const { revision } = await read(0)
    const put = []
    for (let count = 0; count < 23; count += 1) put.push((await putVersion({ state: 'active' })).id)
    expect((await call(`/v1/skills/sync?since=${revision}`)).body).toMatchObject({ more: true, items: { length: 20 } })
    expect((await read(revision)).items.map(({ id }) => id)).toEqual(put)
  })

  test('leaves out other projects, and skills that the key may not read', async () => {
    const { revision } = await read(0)
    const changes = { 'compat.project': 'mine', scope: 'project' }
    const mine = await putVersion({ state: 'active', changes, scopes: ['team-a/*'], owner_id: freshId() })
    const shared = await putVersion({ state: 'active', changes: { 'compat.project': undefined, scope: 'org' }, owner_id: freshId() })
    await putVersion({ state: 'active', changes: { ...changes, 'compat.project': 'other' } })
    await putVersion({ state: 'active', changes, scopes: ['team-b/*'], owner_id: freshId() })
    const key = await keyFor(['viewer'], ['team-a/x'])
    expect((await read(revision, { project: 'mine', key })).items.map(({ id }) => id)).toEqual([mine.id, shared.id])
  })

  test('answers a revision of the future with its own, so that a copy starts over', async () => {
    const { revision } = await read(0)
    expect((await call(`/v1/skills/sync?since=${revision + 100}`)).body).toEqual({ items: [], revision, more: false })
  })
})

describe('telemetry', () => {
  const window = { since: '2026-11-21T05:00:00Z', until: '2026-11-21T06:00:00Z' }
  const report = (skill: Record<string, unknown>, more: Record<string, unknown> = {}, key?: string) =>
    call('/v1/telemetry', {
      json: { client: 'shop', window, skills: [{ calls: 10, success: 9, delta_cost: -0.4, delta_p95: null, ...skill }], ...more },
      ...(key === undefined ? {} : { key }),
    })

  test('counts a window of a client of a key once, and sums the clients', async () => {
    const skill_id = freshId('skill')
    const key = await keyFor(['publisher'])
    expect((await report({ skill_id }, {}, key)).body).toEqual({ accepted: 1, duplicate: false })
    expect((await report({ skill_id, calls: 99 }, {}, key)).body).toEqual({ accepted: 0, duplicate: true })
    await report({ skill_id, calls: 30, success: 3, delta_cost: null }, { client: 'other' }, key)
    await report({ skill_id, calls: 30, success: 30, delta_cost: 0 }, {}, await keyFor(['publisher']))
    expect((await call(`/v1/telemetry?skill_id=${skill_id}`)).body).toEqual({
      items: [{ skill_id, clients: 3, calls: 70, success: 42, success_rate: 0.6, delta_cost: -0.1, delta_p95: null }],
      next_cursor: null,
    })
    expect((await call(`/v1/telemetry?skill_id=${skill_id}`, { key: await keyFor(['viewer'], ['team-a/*']) })).body.items).toEqual([])
  })

  test.each([
    ['an unknown field', { skill_id: 'a', prompt: 'the text' }, {}],
    ['an unknown field beside the skills', { skill_id: 'a' }, { text: 'x' }],
    ['more successes than calls', { skill_id: 'a', success: 11 }, {}],
    ['a window of two days', { skill_id: 'a' }, { window: { since: '2026-11-21T05:00:00Z', until: '2026-11-23T05:00:00Z' } }],
    ['a window that ends before it begins', { skill_id: 'a' }, { window: { since: window.until, until: window.since } }],
    [
      'a skill twice',
      {},
      { skills: Array.from({ length: 2 }, () => ({ skill_id: 'a', calls: 1, success: 1, delta_cost: 0, delta_p95: 0 })) },
    ],
  ])('refuses %s', async (_name, skill, more) => {
    expect(await report(skill, more)).toMatchObject(problem(400))
  })
})
