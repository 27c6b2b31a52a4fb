import { describe, expect, test, vi } from 'vitest'
import { TOOLS_PER_PAGE } from '../../../../src/features/protocols/http/mcp/server.ts'
import { call, callWith, keyFor, problem, scopePath } from '../../../support/http.ts'
import { ask, post, toolsOf, useTool } from '../../../support/mcp.ts'
import { freshId } from '../../../support/reflexes.ts'
import { entriesOf, freshScope, stubOf, until } from '../../../support/scopes.ts'
import { putVersion } from '../../../support/skills.ts'
import { effects } from '../../../support/test-agents.ts'
import { skill, twoSteps } from '../../../support/two-step-skill.ts'

const did = (scope: string) => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)
const nameOf = (id: string): string => id.replaceAll('.', '__')
/** For one scope alone, so that no other test's are listed there. */
const placed = async () => {
  const scope = freshScope()
  const project = crypto.randomUUID()
  expect(await call(scopePath(scope), { method: 'PATCH', json: { project } })).toMatchObject({ status: 200 })
  return { scope, project }
}
const input = (name: string, more: object = {}) => ({ name, type: 'string', required: true, ...more })

describe('the tools of a scope', () => {
  test('are its active skills, with their inputs, outputs and effects', async () => {
    const { scope, project } = await placed()
    const { plan, signature } = twoSteps('x')
    const inputs = [
      input('what', { description: 'the thing' }),
      input('count', { type: 'integer', required: false }),
      input('place', { type: 'url' }),
      input('password', { secret: true }),
    ]
    const id = await skill({
      compat: { project },
      signature: { ...signature, inputs, blackboard_bindings: { inputs: { place: 'ctx.place', password: 'env.password' }, outputs: {} } },
      plan: {
        ...plan,
        idempotence_key: 'k:{{what}}',
        compensation: [{ when: 'partial_failure', tool: 'act', args: { text: 'undo' } }],
      },
      effects: { writes: [], external: ['changed:it'] },
    })
    await skill({ compat: { project } }, 'candidate')
    expect((await ask(scope, 'tools/list')).body).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {
        tools: [
          {
            name: nameOf(id),
            title: `${id}@1.0.0`,
            description: 'Does it twice\nGives done (string).',
            inputSchema: {
              type: 'object',
              properties: {
                what: { type: 'string', description: 'the thing' },
                count: { type: 'integer' },
                place: { type: 'string', format: 'uri' },
                reflex_why: { type: 'string', maxLength: 2000, description: expect.stringContaining('Why') },
              },
              required: ['what', 'place', 'reflex_why'],
              additionalProperties: false,
            },
            annotations: { destructiveHint: true, idempotentHint: true, openWorldHint: true },
            _meta: { 'reflex/skill_id': id, 'reflex/version': '1.0.0' },
          },
        ],
      },
    })
  })

  test('are shown as harmless only where every step is known to read', async () => {
    const { scope, project } = await placed()
    const look = { name: 'http.look', description: 'Looks', method: 'GET', url: 'https://a.example/' }
    const http_tools = [
      look,
      { ...look, name: 'http.search', method: 'POST', repeatable: true },
      { ...look, name: 'http.set', method: 'PUT' },
    ]
    await call(scopePath(scope), { method: 'PATCH', json: { allowed_hosts: ['a.example'], http_tools } })
    const budget = { max_cost_usd: 1, max_latency_ms: 9000 }
    const hintOf = async (...tools: string[]) => {
      const id = await skill({ compat: { project }, plan: { budget, steps: tools.map((tool) => ({ tool })), result_map: { done: 'yes' } } })
      const listed = (await toolsOf(scope)).find(({ name }) => name === nameOf(id))
      return listed?.['annotations']
    }
    expect(await hintOf('http.look', 'http.search')).toMatchObject({ destructiveHint: false, openWorldHint: false })
    expect(await hintOf('http.look', 'http.set')).toMatchObject({ destructiveHint: true })
    expect(await hintOf('act')).toMatchObject({ destructiveHint: true })
    expect(await hintOf('http.unknown')).toMatchObject({ destructiveHint: true })
  })

  test('are those that fit the scope, where its agent works and whom it was registered for', async () => {
    const { scope, project } = await placed()
    const here = await skill({ compat: { project } })
    await skill({ compat: { project: `${project}-2` } })
    await putVersion({ scopes: ['elsewhere/*'], changes: { compat: { project } }, state: 'active' })
    expect((await toolsOf(scope)).map(({ title }) => title)).toEqual([`${here}@1.0.0`])
  })

  test('need no reason where what the scope is for is enough for the gate', async () => {
    const { scope, project } = await placed()
    await skill({ compat: { project } })
    expect((await toolsOf(scope))[0]?.inputSchema.required).toEqual(['what', 'reflex_why'])
    await call(scopePath(scope), { method: 'PATCH', json: { goal_labels: ['twice'] } })
    expect((await toolsOf(scope))[0]?.inputSchema.required).toEqual(['what'])
  })

  test('need what is bound to the blackboard as long as the blackboard has no value of its type', async () => {
    const { scope, project } = await placed()
    const { signature } = twoSteps('x')
    const bindings = { inputs: { place: 'ctx.site.place', old: 'ctx.old' }, outputs: {} }
    const inputs = [input('what'), input('place'), input('old', { required: false })]
    await skill({ compat: { project }, signature: { ...signature, inputs, blackboard_bindings: bindings } })
    const required = async () => (await toolsOf(scope))[0]?.inputSchema.required
    const configure = (ctx: object) => call(scopePath(scope), { method: 'PATCH', json: { blackboard: { ctx } } })
    expect(await required()).toEqual(['what', 'place', 'reflex_why'])
    expect(await configure({ site: { place: 7 } })).toMatchObject({ status: 200 })
    expect(await required()).toEqual(['what', 'place', 'reflex_why'])
    await configure({ site: { place: 'there' } })
    expect(await required()).toEqual(['what', 'reflex_why'])
  })

  test('come page by page, each once, also those whose ids make no short name', async () => {
    const { scope, project } = await placed()
    const long = `page.${'x'.repeat(60)}`
    const ids = Array.from({ length: TOOLS_PER_PAGE + 1 }, (_, index) => `${long}.n${index}`)
    await Promise.all(ids.map((id) => putVersion({ changes: { id, compat: { project } }, state: 'active' })))
    const tools = await toolsOf(scope)
    expect(tools.map(({ title }) => title)).toEqual(ids.toSorted().map((id) => `${id}@1.3.0`))
    expect(new Set(tools.map(({ name }) => name)).size).toBe(ids.length)
    expect(await ask(scope, 'tools/list', { cursor: 'no cursor' })).toMatchObject({ body: { error: { code: -32602 } } })
  })
})

describe('a call of a tool', () => {
  test('that the gate allows runs the skill, and returns its outputs', async () => {
    const scope = freshScope()
    const id = await skill()
    const answer = await useTool(scope, { name: nameOf(id), arguments: { what: 'x', reflex_why: 'do it twice' } })
    expect(answer).toMatchObject({
      isError: false,
      told: { skill_id: id, version: '1.0.0', status: 'ok', outputs: { done: 'x' } },
      structuredContent: { status: 'ok', decision: { verdict: 'allow', score: 2 }, steps: [{ status: 'ok' }, { status: 'ok' }] },
    })
    expect(did(scope)).toEqual(['first x', 'second x'])
    expect(await entriesOf(stubOf(scope), 'skill-decided')).toMatchObject([{ from: 'model', skill_id: id, why: 'do it twice' }])
  })

  test('of a skill with a name too long is of that skill', async () => {
    const { scope, project } = await placed()
    const id = `${freshId('long')}.${'x'.repeat(40)}`
    await putVersion({ changes: { id, compat: { project } }, state: 'active' })
    const [tool] = await toolsOf(scope)
    expect((await useTool(scope, { name: tool?.name ?? '' })).told).toMatchObject({ skill_id: id, version: '1.3.0' })
  })

  test.each([
    ['misses an input', {}, { reflex_why: 'twice' }, { status: 'clarify', questions: [{ slot: 'what', question: expect.any(String) }] }],
    ['gives no reason', {}, { what: 'x' }, { status: 'refused', to_pass: [expect.stringContaining('use a keyword in `why` (twice)')] }],
    [
      'has an input too many',
      {},
      { what: 'x', more: 1, reflex_why: 'twice' },
      { status: 'refused', to_pass: [expect.stringContaining('more')] },
    ],
    [
      'is of a role that the key lacks',
      { policy: { allow_roles: ['ReleaseManager'] } },
      { what: 'x', reflex_why: 'twice' },
      { status: 'refused', to_pass: [expect.stringContaining('ReleaseManager')] },
    ],
  ])('that %s runs nothing, and says what would have to change', async (_, changes, given, expected) => {
    const scope = freshScope()
    const answer = await useTool(scope, { name: nameOf(await skill(changes)), arguments: given })
    expect(answer).toMatchObject({ isError: true, told: expected })
    expect(did(scope)).toEqual([])
  })

  test('has the roles of the key, as a proposal has', async () => {
    const scope = freshScope()
    const name = nameOf(await skill({ policy: { allow_roles: ['ReleaseManager'] } }))
    const given = { name, arguments: { what: 'x', reflex_why: 'twice' } }
    expect((await useTool(scope, given, await keyFor(['publisher']))).told).toMatchObject({ status: 'refused' })
    expect((await useTool(scope, given, await keyFor(['publisher', 'ReleaseManager']))).told).toMatchObject({ status: 'ok' })
  })

  test('neither sends nor receives a secret', async () => {
    const scope = freshScope()
    // Before the skill makes it a secret: later it would be refused.
    await call(scopePath(scope), { method: 'PATCH', json: { blackboard: { env: { own_password: 'hunter2' } } } })
    const { plan, signature } = twoSteps('x')
    const id = await skill({
      signature: {
        ...signature,
        inputs: [input('what'), input('password', { secret: true })],
        blackboard_bindings: { inputs: { password: 'env.own_password' }, outputs: {} },
      },
      plan: {
        ...plan,
        steps: [{ name: 'login', tool: 'act', args: { text: 'as {{password}}' }, timeout_ms: 5000 }],
        result_map: { done: '{{work.steps.login.did}}' },
      },
    })
    const given = { name: nameOf(id), arguments: { what: 'x', reflex_why: 'twice', password: 'hunter2' } }
    expect((await useTool(scope, given)).told).toMatchObject({
      status: 'refused',
      to_pass: [expect.stringContaining('password is secret')],
    })
    const answer = await useTool(scope, { name: nameOf(id), arguments: { what: 'x', reflex_why: 'twice' } })
    expect(answer.told).toMatchObject({ status: 'ok' })
    expect(did(scope)).toEqual(['as hunter2'])
    expect(JSON.stringify(answer)).not.toContain('hunter2')
  })

  test('that needs an approval says who gives it and how, and runs once it is given', async () => {
    const scope = freshScope()
    const name = nameOf(await skill({ policy: { allow_roles: ['publisher'], needs_approval_if: ['true'] } }))
    const { told, isError } = await useTool(scope, { name, arguments: { what: 'x', reflex_why: 'twice' } })
    const approval = told['approval'] as { id: string; approve: string }
    expect({ told, isError }).toMatchObject({ isError: true, told: { status: 'needs_approval', approval: { role: 'operator' } } })
    expect(approval.approve).toBe(`POST https://reflex.test/v1/approvals/${approval.id}/approve`)
    expect(did(scope)).toEqual([])
    expect(await call(`/v1/approvals/${approval.id}/approve`, { json: {} })).toMatchObject({ status: 200 })
    await until(async () => did(scope).length === 2, 'it has run')
  })

  test('that fails names the failed step and the compensated ones', async () => {
    const scope = freshScope()
    const { plan } = twoSteps('x')
    const steps = [plan.steps[0], { tool: 'act', args: { text: 'throw' }, timeout_ms: 5000 }]
    const compensation = [{ when: 'partial_failure', tool: 'act', args: { text: 'undo {{what}}' }, step: 0 }]
    const name = nameOf(await skill({ plan: { ...plan, steps, compensation } }))
    expect(await useTool(scope, { name, arguments: { what: 'x', reflex_why: 'twice' } })).toMatchObject({
      isError: true,
      told: { status: 'partial_failure', steps: [{ status: 'ok' }, { status: 'failed' }], compensation: [{ status: 'ok' }] },
    })
  })

  test('that is dry is decided on, and that is all', async () => {
    const scope = freshScope()
    const name = nameOf(await skill())
    const given = { name, arguments: { what: 'x', reflex_why: 'twice' } }
    const dry = await useTool(scope, { ...given, _meta: { 'reflex/dry_run': true } })
    expect(dry).toMatchObject({
      isError: false,
      told: { status: 'ok', dry_run: true, note: expect.stringContaining('Nothing ran') },
      structuredContent: { status: 'ok', dry_run: true, steps: [{ status: 'planned' }, {}] },
    })
    expect(dry.told).not.toHaveProperty('outputs')
    expect(await ask(scope, 'tools/call', { ...given, _meta: { 'reflex/dry_run': 'yes' } })).toMatchObject({
      body: { error: { code: -32602 } },
    })
    expect((await ask(scope, 'tools/call', { ...given, task: { ttl: 1000 } })).body).toMatchObject({ error: {} })
    expect(did(scope)).toEqual([])
  })

  test.each([
    [{ name: 'no tool' }, 'Unknown tool no tool'],
    [{ name: `a___${'0'.repeat(24)}` }, 'Unknown tool a___'],
    [{ name: 'a', arguments: { reflex_why: 1 } }, 'reflex_why'],
    [{ name: 'a', arguments: { reflex_why: 'x'.repeat(2001) } }, 'reflex_why'],
  ])('is not %j', async (params, detail) => {
    const { status, body } = await ask(freshScope(), 'tools/call', params)
    expect({ status, body }).toMatchObject({ status: 200, body: { error: { code: -32602, message: expect.stringContaining(detail) } } })
  })

  test('names its tool', async () => {
    expect((await ask(freshScope(), 'tools/call', { arguments: {} })).body).toMatchObject({
      error: { message: expect.stringContaining('name') },
    })
  })

  test('of a skill that there is not is refused like any other', async () => {
    expect(await useTool(freshScope(), { name: 'no__such__skill' })).toMatchObject({
      isError: true,
      told: { status: 'refused', reason: 'there is no skill no.such.skill' },
    })
  })
})

describe('authorization', () => {
  test('look is a viewer, who may not call', async () => {
    const scope = freshScope()
    const key = await keyFor(['viewer'])
    const name = nameOf(await skill())
    expect(await ask(scope, 'tools/list', {}, { key })).toMatchObject({ status: 200, body: { result: {} } })
    const refused = await ask(scope, 'tools/call', { name, arguments: { what: 'x', reflex_why: 'twice' } }, { key })
    expect(refused).toMatchObject(problem(403))
    expect(did(scope)).toEqual([])
  })

  test('act in a scope is whose key covers it; without a scope it is the default one', async () => {
    const key = await keyFor(['publisher'], ['team-a/*'])
    expect(await ask('team-a/x', 'ping', {}, { key })).toMatchObject({ status: 200, body: { result: {} } })
    expect(await ask('team-b/x', 'ping', {}, { key })).toMatchObject(problem(403))
    expect(await ask('no scope', 'ping')).toMatchObject(problem(400, 'invalid-scope'))
    const headers = { Accept: 'application/json, text/event-stream' }
    const json = { jsonrpc: '2.0', id: 1, method: 'ping' }
    expect(await call('/v1/mcp', { json, headers })).toMatchObject({ status: 200 })
    expect(await call('/v1/mcp', { json, headers, key })).toMatchObject(problem(403))
    expect(await call('/v1/mcp', { json, headers, key: null })).toMatchObject(problem(401))
  })
})

describe('the transport', () => {
  const scope = freshScope()
  const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' }

  test('agrees on a version, and says what the tools are', async () => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const { body, headers } = await ask(scope, 'initialize', params)
    expect(body.result).toEqual({
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'reflex', title: `Reflex: ${scope}`, version: '1' },
      instructions: expect.stringContaining(scope),
    })
    expect(headers.has('Mcp-Session-Id')).toBe(false)
    const notified = await post(scope, { jsonrpc: '2.0', method: 'notifications/initialized' })
    expect({ status: notified.status, text: notified.text }).toEqual({ status: 202, text: '' })
  })

  test('has no sessions to follow or to end', async () => {
    for (const method of ['GET', 'DELETE']) {
      const answer = await call('/v1/mcp', { method, headers: { Accept: 'text/event-stream' } })
      expect(answer).toMatchObject(problem(405))
      expect(answer.headers.get('Allow')).toBe('POST')
    }
  })

  test('tells a page of any origin, which has nothing but the key that it was given', async () => {
    const headers = { Origin: 'https://inspector.example', 'Access-Control-Request-Headers': 'authorization,mcp-protocol-version' }
    const asked = await call('/v1/mcp', { method: 'OPTIONS', key: null, headers: { ...headers, 'Access-Control-Request-Method': 'POST' } })
    expect(asked.headers.get('Access-Control-Allow-Headers')).toContain('mcp-protocol-version')
    const { headers: told } = await post(scope, ping, { headers })
    expect(told.get('Access-Control-Allow-Origin')).toBe('*')
  })

  test.each([
    ['no message', { hello: 1 }, {}, 400],
    ['an unknown version', ping, { 'MCP-Protocol-Version': '1999-01-01' }, 400],
    ['an answer that the client does not take', ping, { Accept: 'application/json' }, 406],
  ])('refuses %s', async (_, json, headers, status) => {
    expect((await post(scope, json, { headers })).status).toBe(status)
  })

  test('takes one message at a time', async () => {
    const refused = await post(scope, [ping, ping])
    expect(refused).toMatchObject(problem(400))
    expect(refused.body.detail).toContain('not a batch')
  })

  test('rejects malformed and oversized JSON', async () => {
    const { status, body } = await call('/v1/mcp', { body: '{"jsonrpc":', headers: { Accept: 'application/json, text/event-stream' } })
    expect({ status, body }).toMatchObject({ status: 400, body: { type: 'urn:reflex:problem:malformed-body' } })
    expect(await post(scope, ping, { type: 'text/plain' })).toMatchObject(problem(415))
    expect(await post(scope, { ...ping, params: { more: 'x'.repeat(1024 * 1024) } })).toMatchObject(problem(413))
    const deep = JSON.parse(`${'['.repeat(5000)}${']'.repeat(5000)}`) as unknown
    expect(await post(scope, { ...ping, params: { deep } })).toMatchObject(problem(400, 'invalid-request'))
  })

  test('answers what broke as every other route does, and not with what it was', async () => {
    const failed = vi.spyOn(console, 'error').mockImplementation(() => {})
    const SCOPE = { getByName: () => ({ propose: () => Promise.reject(new Error('inner workings')) }) }
    const json = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' } }
    const answer = await callWith({ SCOPE }, '/v1/mcp', { json, headers: { Accept: 'application/json, text/event-stream' } })
    failed.mockRestore()
    expect(answer).toMatchObject(problem(500, 'internal'))
    expect(answer.text).not.toContain('inner workings')
  })

  test('does not know a method that is not offered', async () => {
    expect(await ask(scope, 'resources/list')).toMatchObject({ status: 200, body: { error: { code: -32601 } } })
  })
})
