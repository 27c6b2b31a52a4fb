import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { call } from '../../../support/http.ts'
import { mcpAnswer, outside } from '../../../support/mock-fetch.ts'
import { HOST, scopeWith, skillOf } from '../../../support/scope-with-remote-tools.ts'
import { entriesOf, freshScope, note, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { effects } from '../../../support/test-agents.ts'
import { propose, skill, twoSteps } from '../../../support/two-step-skill.ts'

const register = (manifest: object) => call('/v1/skills', { json: manifest })

describe('a skill whose steps act, by what is known of their tools', () => {
  const step = (tool: string) => [{ tool, args: { text: '{{what}}' }, timeout_ms: 5000 }]
  const plan = (tool: string, more: object = {}) => ({ ...twoSteps('x').plan, steps: step(tool), ...more })
  const preconditions = { tools_available: [], data_present: [], invariants: [] }

  test('is refused without a key and without a compensation, whatever its manifest says', async () => {
    const bare = twoSteps('acts.bare', { plan: plan('act_plain'), preconditions })
    const refused = await register(bare)
    expect(refused.status).toBe(400)
    expect(refused.body.errors).toEqual([
      { path: 'plan.steps[0].tool', message: 'act_plain acts (undo_plain undoes it): give plan.idempotence_key or plan.compensation' },
    ])
    const keyed = { ...bare, id: 'acts.keyed', plan: plan('act_plain', { idempotence_key: 'act:{{what}}' }) }
    expect((await register(keyed)).status).toBe(201)
    const compensation = [{ when: 'partial_failure', step: 0, tool: 'undo_plain', args: { text: '{{what}}' } }]
    expect((await register({ ...bare, id: 'acts.undone', plan: plan('act_plain', { compensation }) })).status).toBe(201)
  })

  describe('over HTTP', () => {
    let world: ReturnType<typeof outside>
    beforeEach(() => {
      world = outside(HOST, () => Response.json({}))
    })
    afterEach(() => world.restore())

    test.each([
      ['POST', {}, 400],
      ['POST', { repeatable: true }, 201],
      ['GET', {}, 201],
    ] as const)('by a tool that sends %s, %j, is answered by %i', async (method, more, status) => {
      const name = `http.lint.${method.toLowerCase()}${status}`
      const body = method === 'POST' ? { body: { title: '{{title}}' } } : {}
      const scope = await scopeWith({
        http_tools: [{ name, description: 'x', method, url: `https://${HOST}/x?title={{title}}`, ...body, ...more }],
      })
      await sendAndSettle(stubOf(scope), note(scope, 'go'))
      const listed = async () => (await call(`/v1/scopes?search=${encodeURIComponent(scope)}`)).text.includes(scope)
      await until(listed, 'the scope is listed')
      const { plan: whole, ...rest } = skillOf(name, { title: '{{title}}' })
      const { idempotence_key: _key, ...keyless } = whole
      const answer = await register({ ...rest, plan: keyless })
      expect([answer.status, answer.body.errors?.[0]?.message]).toEqual([
        status,
        status === 201 ? undefined : `${name} acts (it sends POST): give plan.idempotence_key or plan.compensation`,
      ])
    })
  })

  test.each([
    [{ destructiveHint: true }, 400],
    [{ destructiveHint: false }, 201],
    [undefined, 201],
  ] as const)('by an MCP tool whose server says %j of it, is answered by %i', async (annotations, status) => {
    const world = outside(HOST, (request) => {
      const answer = mcpAnswer(request)
      if (!request.body.includes('"tools/list"')) return answer
      const { id } = JSON.parse(request.body) as { id: number }
      const tools = [
        { name: 'drop', description: 'x', inputSchema: { type: 'object', properties: {} }, ...(annotations && { annotations }) },
      ]
      return Response.json({ jsonrpc: '2.0', id, result: { tools } })
    })
    const name = `bin${status}${annotations ? 'said' : ''}`
    const scope = await scopeWith({ mcp_servers: [{ name, url: `https://${HOST}/mcp` }] })
    await sendAndSettle(stubOf(scope), note(scope, 'go'))
    await until(async () => (await call(`/v1/scopes?search=${encodeURIComponent(scope)}`)).text.includes(scope), 'the scope is listed')
    const { plan: whole, ...rest } = skillOf(`mcp.${name}.drop`, { title: '{{title}}' })
    const { idempotence_key: _key, ...keyless } = whole
    const answer = await register({ ...rest, plan: keyless })
    world.restore()
    expect([answer.status, answer.body.errors?.[0]?.message]).toEqual([
      status,
      status === 201
        ? undefined
        : `mcp.${name}.drop acts (its server says that it destroys): give plan.idempotence_key or plan.compensation`,
    ])
  })
})

test('a manifest is registered with what its author hardly meant', async () => {
  const { body } = await register(
    twoSteps('acts.doubtful', { preconditions: { tools_available: [], data_present: [], invariants: ['1 > 2'] } }),
  )
  expect(body.findings).toMatchObject([
    { path: 'preconditions.invariants[0]', message: '1 > 2 can never hold, so that the skill never runs' },
  ])
})

test('a duplicate within the cooldown is answered with the first outputs, and another run waits', async () => {
  const scope = freshScope()
  const { activation, plan } = twoSteps('x')
  const id = await skill({ activation: { ...activation, cooldown_s: 3600 }, plan: { ...plan, idempotence_key: 'twice:{{what}}' } })
  const first = await propose(scope, id)
  const again = await propose(scope, id)
  expect([first, again]).toMatchObject([
    { status: 'ok', idempotent: false },
    { status: 'ok', idempotent: true, outputs: first.outputs },
  ])
  expect(await propose(scope, id, { inputs: { what: 'y' } })).toMatchObject({
    status: 'refused',
    reason: expect.stringContaining('wait until'),
  })
  expect(effects.filter((effect) => effect.scope === scope)).toHaveLength(2)
  const decided = await entriesOf(stubOf(scope), 'skill-decided')
  expect(decided.map(({ request }) => (request as { answered?: boolean }).answered)).toEqual([undefined, true, undefined])
})
