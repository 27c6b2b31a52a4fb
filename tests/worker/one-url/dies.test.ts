import { afterEach, expect, test } from 'vitest'
import { callWith, fetchRaw } from '../../support/http.ts'
import { outside } from '../../support/mock-fetch.ts'
import { HOST } from '../../support/scope-with-remote-tools.ts'
import { crash, entriesOf, freshScope, stubOf, until } from '../../support/scopes.ts'

const CHAT = '/v1/openai/chat/completions'
const PASS = { REFLEX_UNRECORDED: 'pass', REFLEX_MODEL: 'offline' }
// Few tokens: its scopes share a budget, which holds the price of calls that were lost.
const json = (more: object) => ({ model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }], ...more })
const silence = new Promise<never>(() => {})

let provider: ReturnType<typeof outside> | undefined
afterEach(() => provider?.restore())

/** A scope whose model says this much of its answer, and then nothing more. */
function halfAnswered(said: string) {
  const piece = { id: 'x', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta: { content: said } }] }
  const begun = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(said === '' ? ': \n\n' : `data: ${JSON.stringify(piece)}\n\n`)),
  })
  provider = outside(HOST, ({ body }) =>
    (JSON.parse(body) as { stream?: boolean }).stream ? new Response(begun, { headers: { 'content-type': 'text/event-stream' } }) : silence,
  )
  const { requests } = provider
  return { scope: freshScope('priced'), asked: () => until(async () => requests.length > 0, 'the model is asked') }
}

/** The end of the request by its trace, once its scope is awake again. */
async function endOf(scope: string) {
  const stub = stubOf(scope)
  await stub.state()
  await until(async () => (await entriesOf(stub, 'event-ended')).length > 0, 'the event has ended')
  const [accepted] = await entriesOf(stub, 'event-accepted')
  const [ended] = await entriesOf(stub, 'turn-ended')
  expect(ended?.trace_id).toBe(accepted?.trace_id)
  return { status: ended?.status, error: ended?.error, calls: (await entriesOf(stub, 'model-called')).length }
}
const LOST = { status: 'lost', error: 'the server died, was reset or was evicted in the middle of the answer', calls: 0 }

test.each([
  ['as a whole', {}],
  ['in a stream', { stream: true }],
])('a scope that dies before it answers %s fails the request, and its trace says so', async (_, more) => {
  const { scope, asked } = halfAnswered('')
  const answer = callWith({}, CHAT, { json: json(more), headers: { 'x-reflex-scope': scope } })
  await asked()
  await crash(scope)
  expect(await answer).toMatchObject({ status: 500, body: { error: { type: 'server_error' } } })
  expect(await endOf(scope)).toEqual(LOST)
})

test.each([
  ['as a whole', {}],
  ['in a stream', { stream: true }],
])("where requests pass, the deployment's model answers %s in its place, and the trace still says so", async (_, more) => {
  const { scope, asked } = halfAnswered('')
  const answer = callWith(PASS, CHAT, { json: json(more), headers: { 'x-reflex-scope': scope } })
  await asked()
  await crash(scope)
  const { status, headers, text } = await answer
  expect([status, headers.get('x-reflex-unrecorded'), headers.get('x-reflex-trace')]).toEqual([200, 'true', null])
  expect(text).toContain('hello')
  expect(await endOf(scope)).toEqual(LOST)
})

test('where requests pass, one with tools fails all the same, since nothing decides on its calls', async () => {
  const { scope, asked } = halfAnswered('')
  const tools = [{ type: 'function', function: { name: 'send_mail', parameters: { type: 'object' } } }]
  const answer = callWith(PASS, CHAT, { json: json({ tools }), headers: { 'x-reflex-scope': scope } })
  await asked()
  await crash(scope)
  expect(await answer).toMatchObject({ status: 500 })
  expect(await endOf(scope)).toEqual(LOST)
})

test('a stream that has begun to answer ends with an error, since nothing can take its place', async () => {
  const { scope } = halfAnswered('Half of')
  const response = await fetchRaw(CHAT, { body: JSON.stringify(json({ stream: true })), headers: { 'x-reflex-scope': scope } })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  let read = await reader?.read()
  while (read?.value !== undefined && !(text += read.value).includes('Half of')) read = await reader?.read()
  await crash(scope)
  for (read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) text += read.value
  expect(text).toContain('The scope broke off the answer: its trace says how far it came.')
  expect(text).not.toContain('[DONE]')
  expect(await endOf(scope)).toEqual(LOST)
})
