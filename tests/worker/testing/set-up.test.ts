import { testScope } from 'reflex-agents/testing'
import { expect, test, vi } from 'vitest'
import { greeter } from '../../support/guide/greeter.ts'

const says = (content: string) => ({ type: 'ws.message', connection_id: 'ada', content })
const openDoor = {
  id: 'door.open',
  version: '1.0.0',
  owner: 'house',
  signature: { inputs: [{ name: 'door', type: 'string', required: true }] },
  plan: {
    budget: { max_cost_usd: 0.01, max_latency_ms: 5000 },
    steps: [{ tool: 'open_door', args: { door: '{{door}}' } }],
  },
  activation: { keywords_any: ['open'], score_weights: { keyword_hit: 1 }, tau: 1 },
  policy: { allow_roles: ['agent'], needs_approval_if: ["inputs.door == 'back'"] },
}
const proposal = '<SKILL_PROPOSE>{"skill_id": "door.open", "inputs": {"door": "back"}, "why": "Ada asks"}</SKILL_PROPOSE>'

test('asks a person before it opens the back door', async () => {
  const scope = await testScope(greeter, { skills: [openDoor], model: [proposal, 'Somebody will decide.'] })
  await scope.send(says('Please open the back door'))
  expect(await scope.calls()).toEqual([])
  await scope.approve()
  await vi.waitFor(async () => expect(await scope.calls()).toMatchObject([{ tool: 'open_door', input: { door: 'back' }, status: 'ok' }]), {
    timeout: 20_000,
  })
})

test('answers a greeting by a reflex, without the model', async () => {
  const code =
    'function reflex(context) { return context.event.content === "hello" ? { action_type: "reply", content: "Hello!", consume: true } : null }'
  const scope = await testScope(greeter, { reflexes: [{ id: 'greet', code }] })
  expect(await scope.send(says('hello'))).toMatchObject({ outcome: { by: 'reflex', reflex_id: 'greet' } })
  expect(await scope.replies()).toEqual(['Hello!'])
  expect(scope.model.requests).toEqual([])
})

test('runs the built-in agent by settings, with a timer', async () => {
  const settings = { agent: 'prompted', instructions: 'Say what time it is.' }
  const scope = await testScope([greeter], { scope: 'clock/1', settings, model: ['It is noon.'] })
  await scope.api('PUT /v1/scopes/{scope}/timers/noon', { every_s: 3600 })
  await scope.advance(3_600_000)
  expect(await scope.replies()).toEqual(['It is noon.'])
})

test('has a digest by settings alone of what came since the last tick', async () => {
  const settings = { agent: 'prompted', instructions: 'Sum up the messages.', when: 'by_type["timer.tick"] > 0' }
  const scope = await testScope([greeter], { scope: 'digest/1', settings, model: ['Two messages.', 'None.'] })
  await scope.api('PUT /v1/scopes/{scope}/timers/evening', { every_s: 3600 })
  for (const content of ['The door squeaks.', 'It rains.']) await scope.send(says(content))
  expect(scope.model.requests).toEqual([])
  await scope.advance(3_600_000)
  expect(scope.model.requests[0]?.text).toMatch(/The door squeaks\.[^]*It rains\./)
  await scope.advance(3_600_000)
  expect(scope.model.requests[1]?.text).not.toContain('It rains.')
  expect(await scope.replies()).toEqual(['Two messages.', 'None.'])
})

test('takes a delivery of a hook as an event', async () => {
  const scope = await testScope(greeter, { env: { REFLEX_HOOK_BELL: 'a secret' }, model: ['Who is there?'] })
  const event = { type: '"ws.message"', connection_id: 'body.who', content: '"It rings."' }
  await scope.api('PUT /v1/hooks/bell', { scope: scope.name, scheme: 'github', event })
  await scope.api('POST /v1/hooks/bell', '{"who": "ada"}', { 'X-Hub-Signature-256': await signature('a secret', '{"who": "ada"}') })
  await vi.waitFor(async () => expect(await scope.replies()).toEqual(['Who is there?']), { timeout: 20_000 })
})

async function signature(secret: string, body: string): Promise<string> {
  const encoder = new TextEncoder()
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
  const signed = await crypto.subtle.sign('HMAC', key, encoder.encode(body))
  return `sha256=${[...new Uint8Array(signed)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
