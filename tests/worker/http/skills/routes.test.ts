import { beforeAll, describe, expect, test } from 'vitest'
import { call, keyFor, problem } from '../../../support/http.ts'
import { freshId } from '../../../support/reflexes.ts'
import { buildManifest, changeTo, putVersion, register, registered } from '../../../support/skills.ts'

const get = (ref: string) => call(`/v1/skills/${ref}`)
const stateOf = async (ref: string) => (await get(ref)).body.state

let alice = ''
let bob = ''
beforeAll(async () => {
  alice = await keyFor(['operator'], ['team-a/*'], 'alice')
  bob = await keyFor(['operator'], ['*'], 'bob')
})

describe('a skill is registered', () => {
  test('from its manifest, as a candidate', async () => {
    const manifest = buildManifest()
    const { status, body } = await call('/v1/skills', { json: manifest, key: alice })
    const hash = expect.stringMatching(/^[0-9a-f]{64}$/)
    expect({ status, body }).toEqual({
      status: 201,
      body: { id: body.id, version: '1.3.0', hash, state: 'candidate', owner: 'alice' },
    })
    const found = (await get(body.id)).body
    expect(found).toEqual({
      ...body,
      scopes: ['team-a/*'],
      state_reason: null,
      state_at: found.created_at,
      sealed: false,
      provenance: { by: 'alice', scope: null },
      created_at: expect.any(String),
      manifest: expect.objectContaining({ owner: 'team-platform', policy: expect.objectContaining({ pii: 'allow' }) }),
      versions: [
        {
          version: '1.3.0',
          hash: body.hash,
          state: 'candidate',
          state_reason: null,
          state_at: found.created_at,
          created_at: found.created_at,
        },
      ],
    })
    expect((await get(`${body.id}@1.3.0`)).body).toEqual(found)
  })

  test('again with the same content in another order, and stays as it is', async () => {
    const manifest = buildManifest() as Record<string, unknown>
    const first = await call('/v1/skills', { json: manifest })
    const turned = Object.fromEntries(Object.entries(manifest).toReversed())
    expect(await call('/v1/skills', { json: turned })).toMatchObject({ status: 200, body: first.body })
    await changeTo('active', first.body.id)
    expect(await call('/v1/skills', { json: manifest })).toMatchObject({ status: 200, body: { state: 'active' } })
  })

  test('under the same version with other content never, whoever is first', async () => {
    const id = freshId('skill')
    const all = await Promise.all(['one', 'two', 'three'].map((description) => register({ id, description })))
    expect(all.map(({ status }) => String(status)).toSorted()).toEqual(['201', '409', '409'])
    const refused = all.find(({ status }) => status === 409)
    expect(refused).toMatchObject(problem(409, 'version-taken'))
    expect(refused?.body.detail).toContain('a higher version')
    const taken = all.find(({ status }) => status === 201)
    expect((await get(id)).body.hash).toBe(taken?.body.hash)
    expect(await register({ id, version: '1.4.0', description: 'two' })).toMatchObject({ status: 201 })
  })

  test('in versions whose text may hold more than numbers', async () => {
    const id = await registered({ version: '2.0.0-rc.1+build.7' })
    expect(await get(`${id}@2.0.0-rc.1+build.7`)).toMatchObject({ status: 200, body: { version: '2.0.0-rc.1+build.7' } })
    expect(await get(encodeURIComponent(`${id}@2.0.0-rc.1+build.7`))).toMatchObject({ status: 200 })
  })

  test("though another's it is, by an admin, and by nobody else", async () => {
    const id = await registered({}, alice)
    expect(await register({ id, version: '2.0.0' }, { key: bob })).toMatchObject(problem(403))
    expect(await register({ id, version: '2.0.0' }, { key: await keyFor(['admin'], ['team-b/*']) })).toMatchObject(problem(403))
    expect(await register({ id, version: '2.0.0' })).toMatchObject({ status: 201, body: { owner: 'alice' } })
  })

  test('not by a key that is named as an agent', async () => {
    expect(await register({}, { key: await keyFor(['operator'], ['*'], 'scope:team-a/x') })).toMatchObject(problem(403))
  })
})

describe('a manifest is refused', () => {
  const broken: [string, Record<string, unknown>, string, RegExp][] = [
    ['without an id', { id: undefined }, 'id', /./],
    ['with an id that is taken', { id: 'schema' }, 'id', /taken/],
    ['with an id that no path could name', { id: 'a@b' }, 'id', /letters/],
    ['with an invalid version', { version: '1.3' }, 'version', /semantic version/],
    ['with a field too many', { more: 1 }, '', /more/],
    ['without steps', { 'plan.steps': [] }, 'plan.steps', /./],
    [
      'with an unknown tool',
      { 'plan.steps.1.tool': 'term.exec' },
      'plan.steps[1].tool',
      /no tool called term\.exec; there are act, .*block/,
    ],
    ['with an unknown tool to undo with', { 'plan.compensation.0.tool': 'undo' }, 'plan.compensation[0].tool', /no tool called undo/],
    ['with an unknown tool required', { 'preconditions.tools_available': ['act', 'none'] }, 'preconditions.tools_available[1]', /none/],
    ['with an unknown probe', { 'policy.deny_if': ["weather(args) == 'bad'"] }, 'policy.deny_if[0]', /no probe called weather/],
    ['with CEL that does not parse', { 'preconditions.invariants': ['ctx.a =='] }, 'preconditions.invariants[0]', /./],
    ['with an unknown slot in a template', { 'plan.steps.0.args': { text: '{{nothing}}' } }, 'plan.steps[0].args.text', /neither an input/],
    ['with no key for what it does outside', { 'plan.idempotence_key': undefined }, 'plan.idempotence_key', /required/],
    ['with a threshold out of reach', { 'activation.tau': 99 }, 'activation.tau', /all cues together score/],
    ['with an output that is not declared', { 'effects.writes': [] }, 'signature.blackboard_bindings.outputs.endpoint', /effects\.writes/],
  ]

  test.each(broken)('%s', async (_what, changes, path, message) => {
    const answer = await register(changes)
    expect(answer).toMatchObject(problem(400, 'invalid-request'))
    expect(answer.body.errors).toContainEqual({ path, message: expect.stringMatching(message) })
  })

  test('with all that is wrong at once', async () => {
    const answer = await register({ 'plan.steps.0.tool': 'a', 'plan.steps.2.tool': 'b', 'activation.tau': 99, 'effects.writes': [] })
    expect(answer.body.errors.map(({ path }: { path: string }) => path)).toEqual([
      'plan.steps[0].tool',
      'plan.steps[2].tool',
      'signature.blackboard_bindings.outputs.endpoint',
      'activation.tau',
    ])
    expect(answer.body.detail).toContain('and 3 more')
  })

  test.each([[[]], ['text'], [null], [{}]])('that is %j', async (json) => {
    expect(await call('/v1/skills', { json })).toMatchObject(problem(400))
  })

  test('for tools that are not there, unless any are taken', async () => {
    const changes = { 'plan.steps.1.tool': 'term.exec', 'preconditions.invariants': ["deploy_window('staging') == 'open'"] }
    expect(await register(changes)).toMatchObject(problem(400))
    expect(await register({ ...changes, 'activation.tau': 99 }, { query: '?tools=any' })).toMatchObject(problem(400))
    expect(await register(changes, { query: '?tools=any' })).toMatchObject({ status: 201, body: { state: 'candidate' } })
    expect(await register(changes, { query: '?tools=all' })).toMatchObject(problem(400))
  })

  test('for no tool of a scope', async () => {
    expect(await register({ 'plan.steps.0.tool': 'http.get', 'plan.steps.1.tool': 'mcp.files/read' })).toMatchObject({ status: 201 })
    expect(await register({ 'plan.steps.0.tool': 'https.get' })).toMatchObject(problem(400))
  })
})

describe('read access to a skill', () => {
  const read = async (ref: string, scopes: string[]) => (await call(`/v1/skills/${ref}`, { key: await keyFor(['viewer'], scopes) })).status
  const listed = async (q: string, scopes: string[]): Promise<string[]> =>
    (await call(`/v1/skills?q=${q}`, { key: await keyFor(['viewer'], scopes) })).body.items.map(
      ({ id, version }: { id: string; version: string }) => `${id}@${version}`,
    )

  test.each([
    [['team-a/*'], true],
    [['team-a/x'], true],
    [['team-*'], true],
    [['*/x'], true],
    [['*'], true],
    [['team-b/*'], false],
    [['team-a'], false],
    [['team-ab/*', 'elsewhere'], false],
  ])('of team-a/*: a key of %j: %s', async (scopes, expected) => {
    const id = await registered({}, alice)
    expect(await read(id, scopes)).toBe(expected ? 200 : 404)
    expect(await listed(id, scopes)).toEqual(expected ? [`${id}@1.3.0`] : [])
  })

  test('is everybody, of a version that the manifest shares with the org, and of no other version', async () => {
    const id = await registered({ scope: 'org' }, alice)
    await registered({ id, version: '2.0.0' }, alice)
    expect(await read(id, ['team-b/*'])).toBe(200)
    expect(await read(`${id}@2.0.0`, ['team-b/*'])).toBe(404)
    expect(await listed(id, ['team-b/*'])).toEqual([`${id}@1.3.0`])
    const shown = await call(`/v1/skills/${id}`, { key: await keyFor(['viewer'], ['team-b/*']) })
    expect(shown.body.versions.map(({ version }: { version: string }) => version)).toEqual(['1.3.0'])
    await changeTo('active', `${id}@1.3.0`)
    const proposed = await call('/v1/scopes/team-b%2Fx/skills/propose', { json: { skill_id: id, inputs: {}, why: 'deploy' } })
    expect(proposed.body).toMatchObject({ status: 'refused', reason: `there is no skill ${id}` })
  })
})

describe('skills are listed', () => {
  test('without their manifests, page by page', async () => {
    const mark = freshId('list')
    for (const letter of ['a', 'b', 'c']) await registered({ id: `${mark}.${letter}` })
    const first = await call(`/v1/skills?q=${mark}&limit=2`)
    expect(first.body.items.map(({ id }: { id: string }) => id)).toEqual([`${mark}.a`, `${mark}.b`])
    expect(first.body.items[0]).toMatchObject({ version: '1.3.0', state: 'candidate', description: expect.stringContaining('Deploys') })
    expect(first.text).not.toContain('manifest')
    const second = await call(`/v1/skills?q=${mark}&limit=2&cursor=${first.body.next_cursor}`)
    expect(second.body).toMatchObject({ items: [{ id: `${mark}.c` }], next_cursor: null })
    expect((await call(`/v1/skills?q=${mark}&state=active`)).body.items).toEqual([])
  })

  test.each(['state=retired', 'limit=0', 'limit=1001', 'cursor=a@b', 'q='])('not by %s', async (query) => {
    expect(await call(`/v1/skills?${query}`)).toMatchObject(problem(400))
  })

  test('with a schema for whoever writes one', async () => {
    const { status, body } = await call('/v1/skills/schema')
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { type: 'object', required: expect.arrayContaining(['id', 'version', 'owner', 'plan']) },
    })
    expect(body.properties.plan.properties.steps.minItems).toBe(1)
  })
})

test.each(['none', 'none@1.0.0'])('there is no skill %s', async (ref) => {
  expect(await get(ref)).toMatchObject(problem(404))
  expect(await changeTo('active', ref)).toMatchObject(problem(404))
})

test.each(['1a', 'a@', 'a@1.0', 'a@1.0.0@2.0.0', 'a b', '@1.0.0'])('%s names no skill', async (ref) => {
  expect(await get(encodeURIComponent(ref))).toMatchObject(problem(400))
})

describe("a version's state", () => {
  test('changes with a reason, and only its own', async () => {
    const id = await registered()
    await registered({ id, version: '2.0.0' })
    const answer = await changeTo('active', `${id}@1.3.0`, { reason: 'it passed' })
    expect(answer).toMatchObject({ status: 200, body: { id, version: '1.3.0', state: 'active', state_reason: 'it passed' } })
    expect(answer.text).not.toContain('manifest')
    expect(await get(id)).toMatchObject({
      body: { version: '1.3.0', versions: [{ version: '2.0.0', state: 'candidate' }, { state: 'active' }] },
    })
    expect(await stateOf(`${id}@2.0.0`)).toBe('candidate')
  })

  test('is refused where it may not follow, with what may', async () => {
    const id = await registered()
    await changeTo('active', id)
    const refused = await changeTo('candidate', id)
    expect(refused).toMatchObject(problem(409, 'state-not-allowed'))
    expect(refused.body.detail).toContain('can only become deprecated')
    await changeTo('deprecated', id)
    expect((await changeTo('candidate', id)).body.detail).toContain('can only become active')
    expect(await stateOf(id)).toBe('deprecated')
  })

  test('is not changed where it is not clear which version is meant', async () => {
    const id = await registered()
    await registered({ id, version: '2.0.0' })
    const refused = await changeTo('active', id)
    expect(refused).toMatchObject(problem(409, 'several-versions'))
    expect(refused.body.detail).toContain('2.0.0 (candidate), 1.3.0 (candidate)')
  })

  test('is changed by its owner and by admins who cover its scopes, and by nobody else', async () => {
    const id = await registered({}, alice)
    const refused = await changeTo('active', id, { key: bob })
    expect(refused).toMatchObject(problem(403))
    expect(refused.body.detail).toContain('another id')
    expect(await changeTo('active', id, { key: await keyFor(['admin'], ['team-b/*']) })).toMatchObject(problem(404))
    expect(await stateOf(id)).toBe('candidate')
    expect(await changeTo('active', id, { key: alice })).toMatchObject({ status: 200 })
    expect(await changeTo('deprecated', id, { key: await keyFor(['admin'], ['team-a/*']) })).toMatchObject({ status: 200 })
  })

  test('of what an agent made is changed by who operates its scope', async () => {
    const { id } = await putVersion({
      owner: 'scope:team-a/x',
      owner_id: 'scope:team-a/x',
      scopes: ['team-a/x'],
      provenance: { by: 'agent', scope: 'team-a/x' },
    })
    expect(await changeTo('active', id, { key: await keyFor(['operator'], ['team-b/*']) })).toMatchObject(problem(404))
    expect(await changeTo('active', id, { key: alice })).toMatchObject({ status: 200 })
  })

  test.each([{ state: 'retired' }, {}, { state: 'active', reason: '' }, { state: 'active', force: true }])(
    'is not changed by %j',
    async (json) => {
      expect(await call(`/v1/skills/${await registered()}/state`, { json })).toMatchObject(problem(400))
    },
  )
})
