import { beforeAll, describe, expect, test } from 'vitest'
import { sampleContext } from '../../../../src/reflexes/reflex-context.ts'
import { call, keyFor, problem, type Call } from '../../../support/http.ts'
import { buildReflex, byAgent, createVersion, freshId, register, registered, replying } from '../../../support/reflexes.ts'

const threshold = { event_type: 'ws.message', at_least: 1, action: { action_type: 'reply', content: 'enough of {event.type}' } }
const get = (ref: string, options?: Call) => call(`/v1/reflexes/${ref}`, options)
const post = (ref: string, what: string, json: unknown, key?: string) =>
  call(`/v1/reflexes/${ref}/${what}`, { json, ...(key === undefined ? {} : { key }) })

let alice = ''
let bob = ''
beforeAll(async () => {
  alice = await keyFor(['operator'], ['*'], 'alice')
  bob = await keyFor(['operator'], ['*'], 'bob')
})

describe('a reflex is registered', () => {
  test('from code, and is active at once', async () => {
    const reflex = buildReflex({ description: 'says hello' })
    const { status, body } = await call('/v1/reflexes', { json: reflex, key: alice })
    const receipt = { id: reflex.id, version: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/), owner: 'alice', state: 'active' }
    expect({ status, body }).toEqual({ status: 201, body: { ...receipt, next: null } })
    const { owner, ...found } = (await get(reflex.id)).body
    expect({ owner, ...found }).toEqual({
      ...receipt,
      acts: 1,
      scopes: ['*'],
      description: 'says hello',
      state_reason: null,
      by_proof: false,
      sealed: false,
      sharing: 'project',
      provenance: { by: 'alice', scope: null, template: null, origin: null },
      code: reflex.code,
      created_at: expect.any(String),
      versions: [
        { version: 1, hash: body.hash, state: 'active', state_reason: null, state_at: found.created_at, created_at: found.created_at },
      ],
      certificates: [],
    })
  })

  test.each(['draft', 'shadow', 'active'])('as %s', async (state) => {
    expect(await register({ state })).toMatchObject({ status: 201, body: { state } })
  })

  test('from a template, which it remembers', async () => {
    const id = await registered({ code: undefined, template: 'threshold-in-window', params: threshold })
    const { body } = await get(id)
    expect(body).toMatchObject({ provenance: { template: 'threshold-in-window' }, description: expect.stringContaining('Acts when') })
    expect(body.code).toContain('function reflex(context)')
    expect((await post(id, 'run', {})).body.action).toEqual({ action_type: 'reply', content: 'enough of ws.message' })
  })

  test('again as a new version, while the old one stays as it was', async () => {
    const id = await registered()
    const before = (await get(`${id}@1`)).body
    expect(await register({ id, code: replying('two'), state: 'draft' })).toMatchObject({
      status: 201,
      body: { version: 2, state: 'draft' },
    })
    expect((await get(id)).body).toMatchObject({ version: 2, versions: [{ version: 2 }, { version: 1 }] })
    expect({ ...(await get(`${id}@1`)).body, versions: [] }).toEqual({ ...before, versions: [] })
  })

  test('again with nothing new, and stays as it is', async () => {
    const reflex = buildReflex()
    const first = await call('/v1/reflexes', { json: reflex })
    const second = await call('/v1/reflexes', { json: { ...reflex, state: 'draft' } })
    expect(second).toMatchObject({ status: 200, body: first.body })
    expect((await get(reflex.id)).body.versions).toHaveLength(1)
  })

  test('at once by many, and none is lost', async () => {
    const id = freshId()
    const all = await Promise.all([1, 2, 3, 4, 5].map((number) => register({ id, code: replying(`number ${number}`) })))
    expect(all.map(({ status, body }) => `${status} ${body.version}`).sort()).toEqual(['201 1', '201 2', '201 3', '201 4', '201 5'])
    expect((await get(id)).body.versions).toHaveLength(5)
  })

  test('with a sample of its own type of event', async () => {
    const code = 'function reflex(context) { return { action_type: "reply", content: context.event.address.split(".")[0] } }'
    expect(await register({ code })).toMatchObject(problem(400))
    expect(await register({ code, sample: { type: 'ssh.failed', address: '10.0.0.1' } })).toMatchObject({ status: 201 })
  })

  test('by an admin for another, who stays its owner', async () => {
    const id = await registered({}, alice)
    expect(await register({ id, code: replying('two') })).toMatchObject({ status: 201, body: { version: 2, owner: 'alice' } })
    expect((await get(id)).body.provenance.by).toBe('admin')
  })
})

describe('a reflex is refused', () => {
  const bad: [string, Record<string, unknown>, string, RegExp][] = [
    ['with a syntax error', { code: 'function reflex(context) {\n  return )\n}' }, 'code', /^line 2, column 10: /],
    ['in TypeScript', { code: 'function reflex(context: Context) { return null }' }, 'code', /^line 1, column \d+: .*TypeScript/],
    ['without its function', { code: 'const reflexes = 1' }, 'code', /there is no function reflex/],
    ['with two parameters', { code: 'function reflex(context, more) { return null }' }, 'code', /exactly one parameter, context, not 2/],
    ['with none', { code: 'function reflex() { return null }' }, 'code', /exactly one parameter/],
    ['that imports', { code: 'import "x"\nfunction reflex(context) { return null }' }, 'code', /imports nothing/],
    ['that fails on the sample', { code: 'function reflex(context) {\n  return context.no.such\n}' }, 'code', /^line 2, .*TypeError/],
    ['that never ends', { code: 'function reflex(context) { for (;;); }' }, 'code', /it was stopped after/],
    ['that returns no action', { code: 'function reflex(context) { return { action_type: "launch" } }' }, 'code', /action_type/],
    ['that is too long', { code: `${' '.repeat(64 * 1024)}${replying('x')}` }, 'code', /65536/],
    ['that contains a NUL', { code: `${replying('x')}// \u0000` }, 'code', /NUL/],
    ['with a bad id', { id: 'a/b' }, 'id', /an id is/],
    ['with an id that is taken', { id: 'templates' }, 'id', /taken/],
    ['with an unknown state', { state: 'asleep' }, 'state', /draft/],
    ['as retired', { state: 'retired' }, 'state', /draft/],
    ['with a description too long', { description: 'x'.repeat(1001) }, 'description', /1000/],
    ['with neither code nor template', { code: undefined }, 'template', /either code, or a template/],
    ['with both', { template: 'deduplicator', params: {} }, 'template', /either code, or a template/],
    ['with params and no template', { params: {} }, 'template', /either code, or a template/],
    ['with an unknown template', { code: undefined, template: 'nothing' }, 'template', /threshold-in-window/],
    [
      'with wrong params',
      { code: undefined, template: 'threshold-in-window', params: { ...threshold, at_least: 0 } },
      'params.at_least',
      />=1/,
    ],
    ['without params that are needed', { code: undefined, template: 'rate-limiter' }, 'params.limit', /number/],
    [
      'with params too deep',
      { code: undefined, template: 'rate-limiter', params: deep(70) },
      `params${'.deeper'.repeat(63)}`,
      /nested deeper/,
    ],
    ['with a field too many', { version: 3 }, '', /version/],
  ]
  test.each(bad)('%s', async (_what, fields, path, message) => {
    const answer = await register(fields)
    expect(answer).toMatchObject(problem(400, 'invalid-request'))
    expect(answer.body.errors[0]).toEqual({ path, message: expect.stringMatching(message) })
    expect(answer.body.detail).toContain(answer.body.errors[0].message.replace(/^line \d+, column \d+: /, ''))
  })

  test('where another owns the id', async () => {
    const id = await registered({}, alice)
    const answer = await register({ id, code: replying('two') }, bob)
    expect(answer).toMatchObject(problem(403, 'forbidden'))
    expect(answer.body.detail).toContain('Copy it')
    expect((await get(id)).body.versions).toHaveLength(1)
  })

  test.each([['operator'], ['admin']])('where an owner of other scopes has the id, and says nothing of that owner: %s', async (role) => {
    const id = await registered({}, await keyFor(['operator'], ['team-a/*'], 'alice-of-a'))
    const answer = await register({ id, code: replying('two') }, await keyFor([role], ['team-b/*'], 'bob-of-b'))
    expect(answer).toMatchObject(problem(403, 'forbidden'))
    expect(answer.body.detail).toContain('another id')
    expect(answer.text).not.toMatch(/alice-of-a|team-a/)
  })

  test('where a key of the same name is narrower than the owner', async () => {
    const id = await registered({}, alice)
    const narrow = await keyFor(['operator'], ['team-a/*'], 'alice')
    expect(await register({ id, code: replying('two') }, narrow)).toMatchObject(problem(403))
    expect(await post(id, 'state', { state: 'retired' }, narrow)).toMatchObject(problem(403))
  })

  test('from a key that is named as an agent', async () => {
    const { id } = await createVersion(byAgent('team-a/x'))
    const posing = await keyFor(['operator'], ['team-a/x'], 'scope:team-a/x')
    expect(await register({ id, code: replying('two') }, posing)).toMatchObject(problem(403))
    expect(await register({}, posing)).toMatchObject(problem(403))
    expect(await post(id, 'copy', { id: freshId() }, posing)).toMatchObject(problem(403))
    expect(await post(id, 'state', { state: 'retired' }, posing)).toMatchObject(problem(403))
  })
})

describe('a reflex that is not there', () => {
  test.each<[string, string, object?]>([
    ['GET', ''],
    ['POST', '/run', {}],
    ['POST', '/state', { state: 'draft' }],
    ['POST', '/copy', { id: 'new' }],
    ['GET', '/metrics'],
    ['POST', '/evaluate', { scope: 'default', window: '1h' }],
  ])('is not found by %s %s, nor a version that is not', async (method, rest, json) => {
    const id = await registered()
    for (const ref of ['none', 'none@1', `${id}@2`, `${id}@999999`]) {
      const answer = await get(`${ref}${rest}`, { method, ...(json ? { json } : {}) })
      expect(answer).toMatchObject(problem(404, 'not-found'))
      expect(answer.body.detail).toContain(ref)
    }
    for (const ref of [`${id}@0`, `${id}@`, `${id}@x`, `${id}@1@1`, '%20', '@1']) {
      expect(await get(`${ref}${rest}`, { method, ...(json ? { json } : {}) })).toMatchObject(problem(400, 'invalid-request'))
    }
  })
})

describe('reflexes are listed', () => {
  const ids = async (query: string): Promise<string[]> =>
    (await call(`/v1/reflexes?${query}`)).body.items.map(({ id, version }: { id: string; version: number }) => `${id}@${version}`)

  test('by id, the newest version of each, without code, page by page', async () => {
    const prefix = freshId('list')
    for (const name of ['c', 'a', 'b']) await registered({ id: `${prefix}.${name}` })
    await register({ id: `${prefix}.b`, code: replying('two') })
    const all = [`${prefix}.a@1`, `${prefix}.b@2`, `${prefix}.c@1`]
    expect(await ids(`q=${prefix}`)).toEqual(all)
    const first = await call(`/v1/reflexes?q=${prefix}&limit=2`)
    expect(first.body).toMatchObject({ next_cursor: `${prefix}.b` })
    expect(first.text).not.toContain('function')
    expect(await ids(`q=${prefix}&limit=2&cursor=${first.body.next_cursor}`)).toEqual(all.slice(2))
    expect((await call(`/v1/reflexes?q=${prefix}&limit=3`)).body.next_cursor).toBeNull()
  })

  test('by owner, by state and by what is said of them', async () => {
    const name = freshId('owner')
    const key = await keyFor(['operator'], ['*'], name)
    const one = await registered({ description: '100% sure, A_B' }, key)
    const other = await registered({ state: 'draft' }, key)
    await register({ id: one, code: replying('two'), state: 'shadow' }, key)
    const both = [`${one}@2`, `${other}@1`].sort()
    expect(await ids(`owner=${name}`)).toEqual(both)
    expect(await ids(`owner=${name}&state=draft`)).toEqual([`${other}@1`])
    expect(await ids(`owner=${name}&state=active&q=${encodeURIComponent('100% SURE, a_b')}`)).toEqual([`${one}@1`])
    expect(await ids(`owner=${name}&q=${encodeURIComponent('%')}`)).toEqual([])
    expect(await ids(`owner=${name}&state=retired`)).toEqual([])
    expect(await ids(`owner=${name}&q=${'x'.repeat(100)}`)).toEqual([])
  })

  test.each(['limit=0', 'limit=1001', 'state=asleep', 'cursor=a/b', 'q='])('unless asked by %s', async (query) => {
    const answer = await call(`/v1/reflexes?${query}`)
    expect(answer).toMatchObject(problem(400, 'invalid-request'))
    expect(answer.body.errors[0].path).toBe(query.split('=')[0])
  })

  test('beside the templates they may be made of', async () => {
    const { status, body } = await call('/v1/reflexes/templates')
    expect(status).toBe(200)
    expect(body.items.map(({ name }: { name: string }) => name)).toContain('keyword-router')
    const { params } = body.items.find(({ name }: { name: string }) => name === 'threshold-in-window')
    expect(params).toMatchObject({
      type: 'object',
      required: ['event_type', 'at_least', 'action'],
      properties: { at_least: { minimum: 1 } },
    })
  })
})

describe('a run', () => {
  const echo =
    'function reflex(context) { return { action_type: "reply", content: JSON.stringify([context.event.content, context.agent_id, context.tick]) } }'
  const hostile = 'function reflex(context) { if (context.event.content !== "hello") for (;;); return null }'

  test('shows what a version would do on the sample', async () => {
    const id = await registered({ code: echo })
    await register({ id })
    const answer = await post(`${id}@1`, 'run', {})
    expect(answer).toMatchObject({ status: 200, body: { action: { action_type: 'reply' }, reason: 'fired', error: null } })
    expect(answer.body.fuel).toBeGreaterThan(0)
    expect(answer.body.duration_us).toBeGreaterThanOrEqual(0)
    expect(JSON.parse(answer.body.action.content)).toEqual(['hello', 'prompted', 1])
    expect(await call(`/v1/reflexes/${id}/run`, { method: 'POST' })).toMatchObject({ status: 200, body: { action: { content: 'hello' } } })
  })

  test('takes fields of a context, each as a whole', async () => {
    const id = await registered({ code: echo })
    const { body } = await post(id, 'run', { context: { event: { content: 'bye' }, tick: 7 } })
    expect(JSON.parse(body.action.content)).toEqual(['bye', 'prompted', 7])
  })

  test.each<[string, string, object, string, RegExp]>([
    ['that never ends', hostile, { event: { content: 'x' } }, 'limit', /it was stopped after/],
    ['on a context too large', echo, { event: { content: 'x'.repeat(70_000) } }, 'limit', /larger than 65536/],
    ['that throws', echo, { event: null }, 'error', /TypeError/],
    [
      'that returns no action',
      'function reflex(context) { return context.event.content === "hello" ? null : {} }',
      { event: {} },
      'invalid_action',
      /action_type/,
    ],
  ])('%s is answered all the same', async (_what, code, context, reason, error) => {
    const id = await registered({ code })
    const answer = await post(id, 'run', { context })
    expect(answer).toMatchObject({ status: 200, body: { action: null, reason, error: expect.stringMatching(error) } })
    expect(await post(id, 'run', {})).toMatchObject({ status: 200, body: { error: null } })
  })

  test.each([{ context: [] }, { context: 1 }, { context: deep(70) }, { contexts: {} }])('is refused for %j', async (json) => {
    expect(await post(await registered(), 'run', json)).toMatchObject(problem(400, 'invalid-request'))
  })

  test('leaves the sample as it was', async () => {
    expect(sampleContext.event).toMatchObject({ content: 'hello' })
  })
})

describe('a copy', () => {
  test("is the caller's own, a draft, and remembers what it was copied from", async () => {
    const id = await registered({ description: 'the first' }, alice)
    await register({ id, code: replying('two') }, alice)
    const copied = freshId('copy')
    const original = (await get(`${id}@1`)).body
    const answer = await post(`${id}@1`, 'copy', { id: copied }, bob)
    expect(answer).toMatchObject({ status: 201, body: { id: copied, version: 1, hash: original.hash, owner: 'bob', state: 'draft' } })
    expect((await get(copied)).body).toMatchObject({
      code: original.code,
      description: 'the first',
      provenance: { by: 'bob', scope: null, origin: { id, version: 1, hash: original.hash } },
    })
    expect(await register({ id: copied, code: replying('mine') }, bob)).toMatchObject({ status: 201 })
  })

  test.each(['alice', 'bob'])('does not take the place of another reflex (of %s)', async (owner) => {
    const [id, there] = [await registered({}, alice), await registered({ code: replying('there') }, owner === 'alice' ? alice : bob)]
    expect(await post(id, 'copy', { id: there }, bob)).toMatchObject(problem(409, 'id-taken'))
    expect((await get(there)).body.versions).toHaveLength(1)
  })

  test.each(['templates', 'a/b', ''])('is not made under the id «%s»', async (id) => {
    expect(await post(await registered(), 'copy', { id })).toMatchObject(problem(400))
  })
})

/** Nested this many levels. */
function deep(levels: number): Record<string, unknown> {
  return levels === 0 ? {} : { deeper: deep(levels - 1) }
}
