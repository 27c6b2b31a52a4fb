import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, call, eventually, scopePath, temporaryState, wholeLog } from './api.ts'

const state = await temporaryState()
let server: LocalServer

const start = (): Promise<LocalServer> =>
  startServer({ persist_to: state.directory, migrated: true, vars: { REFLEX_ADMIN_KEY: ADMIN_KEY } })

beforeAll(async () => {
  server = await start()
})
afterAll(async () => {
  await server.stop()
  await state.remove()
})

type Record = { status: string; outcome: { by: string; reflex_id?: string } }
const message = (content: string) => ({ id: randomUUID(), type: 'ws.message', connection_id: 'e2e', content })
const outcomeOf = async (scope: string, content: string): Promise<Record | undefined> => {
  const { events } = await ask<{ events: Record[] }>(server.url, `${scopePath(scope)}/events?wait=outcome`, { body: message(content) })
  return events[0]
}
const register = (id: string, body: string) =>
  ask<{ version: number; state: string }>(server.url, '/v1/reflexes', { body: { id, code: `function reflex(context) {\n${body}\n}\n` } })

test('a reflex that is registered over the API decides events at once, is evaluated and measured, and outlives kill -9', async () => {
  const scope = 'e2e/reflexes'
  expect(
    await register('greeter', "return context.event.content === 'hello' ? { action_type: 'reply', content: 'hi' } : null"),
  ).toMatchObject({
    version: 1,
    state: 'active',
  })
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { reflexes: [{ id: 'greeter' }] } })
  expect(await outcomeOf(scope, 'hello')).toMatchObject({ status: 'completed', outcome: { by: 'reflex', reflex_id: 'greeter' } })
  expect(await outcomeOf(scope, 'something else')).toMatchObject({ outcome: { by: 'turn' } })
  await server.kill9()
  server = await start()
  expect(await outcomeOf(scope, 'hello')).toMatchObject({ outcome: { by: 'reflex' } })
  expect((await wholeLog(server.url, scope)).filter(({ kind }) => kind === 'reply-sent')).toMatchObject([
    { content: 'hi' },
    { content: 'hi' },
  ])
  expect(await ask(server.url, '/v1/reflexes/greeter/evaluate', { body: { scope, window: '1h' } })).toMatchObject({
    contexts: { recorded: 3, rebuilt: 0 },
    fires: 2,
  })
  const metrics = () => ask<{ total: { fired: number; runs: number } }>(server.url, '/v1/reflexes/greeter/metrics')
  await eventually(async () => (await metrics()).total.runs === 3, 'D1 has the counters')
  expect((await metrics()).total).toMatchObject({ runs: 3, fired: 2 })
})

test('hostile code is stopped, the scope continues, and the reflex no longer acts', async () => {
  const scope = 'e2e/hostile'
  const code = 'function reflex(context) { for (;;); }'
  const refused = await call(server.url, '/v1/reflexes', { body: { id: 'hostile', code } })
  // The dry run on creation finds it; one that only turns hostile on real events gets further.
  expect(refused?.status).toBe(400)
  await register('turns-hostile', "if (context.event.connection_id === 'e2e') for (;;);\nreturn null")
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { reflexes: [{ id: 'turns-hostile' }] } })
  for (let index = 0; index < 4; index += 1)
    expect(await outcomeOf(scope, `${index}`)).toMatchObject({ status: 'completed', outcome: { by: 'turn' } })
  const state = () => ask<{ state: string }>(server.url, '/v1/reflexes/turns-hostile')
  await eventually(async () => (await state()).state === 'draft', 'the registry knows')
  expect(
    await ask(server.url, '/v1/reflexes/turns-hostile/run', { body: { context: { event: { ...message('x'), connection_id: 'e2e' } } } }),
  ).toMatchObject({
    action: null,
    reason: 'limit',
  })
})

test('a skill is registered, activated, proposed and explained', async () => {
  const scope = 'ssh/e2e-skills'
  const manifest = {
    id: 'note.blocked',
    version: '1.0.0',
    owner: 'ops',
    scope: 'project',
    description: 'Blocks an address that was reported',
    compat: { env: ['staging'] },
    signature: {
      inputs: [{ name: 'address', type: 'string', required: true }],
      outputs: [],
      blackboard_bindings: { inputs: {}, outputs: {} },
    },
    preconditions: { tools_available: ['block'], data_present: ['address'], invariants: [] },
    plan: {
      idempotence_key: 'block:{{address}}',
      budget: { max_cost_usd: 1, max_latency_ms: 10_000 },
      steps: [{ tool: 'block', args: { address: '{{address}}', reason: 'reported' }, timeout_ms: 5000 }],
      compensation: [],
      result_map: {},
    },
    effects: { writes: [], external: [] },
    activation: {
      required_slots: ['address'],
      goal_labels: [],
      keywords_any: ['block'],
      score_weights: { goal_label: 1, keyword_hit: 2, recent_success: 1 },
      tau: 2,
      cooldown_s: 0,
      max_concurrency: 1,
    },
    llm_support: { parsers: [] },
    policy: { allow_roles: ['publisher'] },
  }
  await ask(server.url, '/v1/skills', { body: manifest })
  await ask(server.url, '/v1/skills/note.blocked/state', { body: { state: 'active' } })
  const propose = () =>
    ask(server.url, `${scopePath(scope)}/skills/propose`, {
      body: { skill_id: 'note.blocked', inputs: { address: '203.0.113.9' }, why: 'block what was reported' },
    })
  expect(await propose()).toMatchObject({ status: 'refused', decision: { to_pass: [expect.stringContaining('staging')] } })
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { env: 'staging' } })
  expect(await propose()).toMatchObject({ status: 'ok', steps: [{ tool: 'block', status: 'ok' }], idempotent: false })
  await server.kill9()
  server = await start()
  expect(await propose()).toMatchObject({ status: 'ok', idempotent: true })
})
