import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { hashJson } from '../../../src/base/json.ts'
import { skills } from '../../../src/artifacts/kinds.ts'
import { insertPromotion } from '../../../src/features/control-plane/store/promotions.ts'
import { adminKey, call, keyFor, problem, type Answer } from '../../support/http.ts'
import { freshId } from '../../support/reflexes.ts'
import { putVersion } from '../../support/skills.ts'
import { skill } from '../../support/two-step-skill.ts'

const toState = (state: 'active' | 'deprecated', { id, version }: { id: string; version: string }) =>
  skills.setState(env.DB, { id, version, state, reason: null, now: 9 })

test('the four APIs answer as the document on skills writes them', async () => {
  const id = await skill()
  const feed = await call('/v1/skills/sync?project=&since=')
  expect(feed).toMatchObject({ status: 200, body: { revision: expect.any(Number) } })
  const key = await keyFor(['viewer', 'publisher', 'operator'])
  const check = async () =>
    (await call('/v1/policy/check', { key, json: { skill_id: id, version: '1.0.0', env: 'staging', roles: ['publisher'] } })).body
  expect(await check()).toEqual({ verdict: 'needs_promotion', reason: expect.stringContaining('has not been promoted to staging') })

  const promoted = await call('/v1/promotions', { key, json: { skill_id: id, version: '1.0.0', from_env: 'dev', to_env: ['staging'] } })
  expect(promoted.body.reports).toMatchObject({ staging: { passed: true, unit: { n: expect.any(Number) } } })
  expect((await call(`/v1/promotions/${promoted.body.id}/approve`, { json: {} })).status).toBe(200)
  expect(await check()).toMatchObject({ verdict: 'allow' })

  const numbers = { skill_id: id, calls: 12, success: 11, delta_cost: -0.42, delta_p95: -0.3 }
  const window = { since: '2026-11-21T05:00:00Z', until: '2026-11-21T06:00:00Z' }
  expect((await call('/v1/telemetry', { key, json: { client: 'shop', window, skills: [numbers] } })).body).toMatchObject({ accepted: 1 })
  expect((await call(`/v1/telemetry?skill_id=${id}`)).body.items).toMatchObject([numbers])
})

test('a feed of an empty project is that of all projects', async () => {
  const { body: before } = await call('/v1/skills/sync?since=1000000')
  const mine = await putVersion({ state: 'active', changes: { 'compat.project': 'mine' } })
  const read = async (query: string) => (await call(`/v1/skills/sync?since=${before.revision}${query}`)).body.items
  expect(await read('&project=')).toMatchObject([{ id: mine.id }])
  expect(await read('&project=other')).toEqual([])
})

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

  test('tells a key of some scopes a revision that only what it may read moves', async () => {
    const key = await keyFor(['viewer'], ['team-a/x'])
    const hidden = { scopes: ['team-b/*'], changes: { scope: 'project' } }
    await putVersion({ state: 'active', changes: { scope: 'project' }, scopes: ['team-a/*'], owner_id: freshId() })
    const { revision } = await read(0, { key })
    await putVersion({ state: 'active', ...hidden, owner_id: freshId() })
    await putVersion({ ...hidden, owner_id: freshId() })
    for (const since of [revision, revision + 1, revision + 2, revision + 1000])
      expect(await read(since, { key })).toEqual({ items: [], revision })
    expect((await read(revision)).revision).toBeGreaterThan(revision)
    const mine = await putVersion({ state: 'active', changes: { scope: 'project' }, scopes: ['team-a/*'], owner_id: freshId() })
    const next = await read(revision, { key })
    expect(next).toMatchObject({ items: [{ id: mine.id }] })
    await toState('deprecated', mine)
    expect(await read(next.revision, { key })).toMatchObject({ items: [{ id: mine.id, manifest: null }] })
  })

  test('answers a revision of the future with its own, so that a copy starts over', async () => {
    const { revision } = await read(0)
    expect((await call(`/v1/skills/sync?since=${revision + 100}`)).body).toEqual({ items: [], revision, more: false })
  })
})

describe('a promotion', () => {
  const people = async (scopes = ['*']) =>
    Promise.all(['alice', 'bob'].map(async (name) => keyFor(['operator'], scopes, `${name}-${freshId()}`)))
  const promote = (skill_id: string, key: string, changes: Record<string, unknown> = {}): Promise<Answer> =>
    call('/v1/promotions', { key, json: { skill_id, version: '1.0.0', from_env: 'dev', to_env: ['staging'], ...changes } })
  const decide = (id: string, verb: 'approve' | 'reject', key: string, json: object = {}): Promise<Answer> =>
    call(`/v1/promotions/${id}/${verb}`, { key, json })
  const verdict = async (skill_id: string, env: string) =>
    (await call('/v1/policy/check', { json: { skill_id, version: '1.0.0', env, roles: ['publisher'] } })).body.verdict

  test('runs the tests in each environment, and opens them once a second person approves', async () => {
    const [alice = '', bob = ''] = await people()
    const id = await skill()
    const { status, body } = await promote(id, alice, { to_env: ['staging', 'prod', 'prod'], reason: 'for the release' })
    expect({ status, body }).toMatchObject({
      status: 201,
      body: { status: 'pending', to_env: ['staging', 'prod'], request_reason: 'for the release', decided_by: null },
    })
    expect(Object.entries(body.reports)).toMatchObject([
      ['staging', { passed: true, hash: body.hash }],
      ['prod', { passed: true, hash: body.hash }],
    ])
    expect(body.hash).toBe((await skills.find(env.DB, id))?.hash)
    expect(await verdict(id, 'prod')).toBe('needs_promotion')
    const approved = await decide(body.id, 'approve', bob, { reason: 'the reports are fine' })
    const trail = {
      status: 'approved',
      decided_by: expect.stringMatching(/^bob/),
      decided_at: expect.any(String),
      reason: 'the reports are fine',
    }
    expect(approved).toMatchObject({ status: 200, body: { ...trail, requested_by: expect.stringMatching(/^alice/) } })
    expect([await verdict(id, 'prod'), await verdict(id, 'staging'), await verdict(id, 'moon')]).toEqual([
      'allow',
      'allow',
      'needs_promotion',
    ])
    expect((await call(`/v1/promotions/${body.id}`, { key: bob })).body).toEqual(approved.body)
    expect((await call(`/v1/promotions?skill_id=${id}&status=approved`, { key: bob })).body.items).toEqual([approved.body])
    expect(approved.text).not.toContain('_key')
  })

  test('is not approved by whoever requested it, not even as an admin or by a key of the same name', async () => {
    const id = await skill()
    const own = await promote(id, adminKey)
    expect(await decide(own.body.id, 'approve', adminKey)).toMatchObject(problem(403))
    const name = `alice-${freshId()}`
    const { body } = await promote(id, await keyFor(['operator'], ['*'], name))
    const same = await keyFor(['admin'], ['*'], name)
    expect(await decide(body.id, 'approve', same)).toMatchObject(problem(403))
    expect(await verdict(id, 'staging')).toBe('needs_promotion')
    expect(await decide(body.id, 'reject', same)).toMatchObject({ status: 200, body: { status: 'rejected' } })
  })

  test('is decided once, and never after a rejection', async () => {
    const [alice = '', bob = ''] = await people()
    const id = await skill()
    const { body } = await promote(id, alice)
    const answers = await Promise.all([decide(body.id, 'reject', bob), decide(body.id, 'approve', bob), decide(body.id, 'approve', bob)])
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 409, 409])
    expect(await decide(body.id, 'approve', bob)).toMatchObject(problem(409, 'already-decided'))
  })

  test('fails where the tests fail, and cannot be approved', async () => {
    const [alice = '', bob = ''] = await people()
    const id = await skill({ compat: { env: ['dev', 'staging'] } })
    const { body } = await promote(id, alice, { to_env: ['staging', 'prod'] })
    expect(body).toMatchObject({ status: 'failed', reports: { staging: { passed: true }, prod: { passed: false } } })
    expect(await decide(body.id, 'approve', bob)).toMatchObject(problem(409, 'already-decided'))
    expect(await verdict(id, 'staging')).toBe('needs_promotion')
  })

  test('is of an active version, from where it may run, to where it may not', async () => {
    const [alice = '', bob = ''] = await people()
    expect(await promote('no.such', alice)).toMatchObject(problem(404))
    expect(await promote(await skill({}, 'candidate'), alice)).toMatchObject(problem(409, 'skill-inactive'))
    const id = await skill()
    expect(await promote(id, alice, { from_env: 'staging', to_env: ['prod'] })).toMatchObject(problem(409, 'not-promoted'))
    expect(await promote(id, alice, { to_env: ['dev'] })).toMatchObject(problem(409, 'already-promoted'))
    expect(await promote(id, alice, { to_env: [] })).toMatchObject(problem(400))
    const { body } = await promote(id, alice)
    await toState('deprecated', { id, version: '1.0.0' })
    expect(await decide(body.id, 'approve', bob)).toMatchObject(problem(409, 'skill-inactive'))
    expect(await decide(body.id, 'reject', bob)).toMatchObject({ status: 200 })
  })

  test('expires', async () => {
    const [alice = '', bob = ''] = await people()
    const { body } = await promote(await skill(), alice)
    await env.DB.prepare('UPDATE promotions SET expires_at = 1 WHERE id = ?').bind(body.id).run()
    expect(await decide(body.id, 'approve', bob)).toMatchObject(problem(409, 'promotion-expired'))
    expect((await call(`/v1/promotions/${body.id}`, { key: bob })).body).toMatchObject({ status: 'expired' })
  })

  test('takes keys that cover all scopes of the owner, and is not found by others', async () => {
    const id = await skill()
    const [, bob = ''] = await people()
    const [narrow = ''] = await people(['team-a/*'])
    expect(await promote(id, narrow)).toMatchObject(problem(403))
    const { body } = await promote(id, bob)
    const { id: theirs } = await putVersion({ state: 'active', scopes: ['team-b/*'], owner_id: freshId() })
    const hidden = { id: freshId(), skill_id: theirs, version: '1.3.0', hash: 'x', from_env: 'dev', to_env: ['prod'], reports: {} }
    const asked = { requested_by: 'x', requested_key: 'x', request_reason: null, created_at: 1, expires_at: 2 }
    await insertPromotion(env.DB, { ...hidden, ...asked, status: 'pending' })
    expect(await call(`/v1/promotions/${hidden.id}`, { key: narrow })).toMatchObject(problem(404))
    expect(await decide(body.id, 'approve', narrow)).toMatchObject(problem(403))
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

  test('refuses by name the skills that the scopes of a key do not cover, and counts the others', async () => {
    const [own, other] = [await putVersion({ state: 'active' }), await putVersion({ state: 'active' })]
    await env.DB.prepare(`UPDATE artifacts SET scopes = '["team-a/*"]' WHERE id = ?`).bind(own.id).run()
    await env.DB.prepare(`UPDATE artifact_patterns SET pattern = 'team-a/*', prefix = 'team-a/' WHERE id = ?`).bind(own.id).run()
    await env.DB.prepare(`UPDATE artifact_patterns SET pattern = 'team-b/*', prefix = 'team-b/' WHERE id = ?`).bind(other.id).run()
    const narrow = await keyFor(['publisher'], ['team-a/*'])
    const of = (skill_id: string) => ({ skill_id, calls: 1, success: 1, delta_cost: null, delta_p95: null })
    const skills = [of(own.id), of(other.id), of('not.there')]
    expect((await report({}, { skills }, narrow)).body).toEqual({ accepted: 1, duplicate: false, refused: [other.id, 'not.there'] })
    const sums = async (id: string) => (await call(`/v1/telemetry?skill_id=${id}`)).body.items
    expect([await sums(own.id), await sums(other.id), await sums('not.there')]).toMatchObject([[{ calls: 1 }], [], []])
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
