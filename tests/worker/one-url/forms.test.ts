import { expect, test } from 'vitest'
import { call, fetchRaw, adminKey } from '../../support/http.ts'
import { freshScope } from '../../support/scopes.ts'

const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const to = (scope: string) => ({ 'x-reflex-scope': scope })
/** The events of a stream: their names, and what they hold. */
async function eventsOf(path: string, json: object, scope: string) {
  const response = await fetchRaw(path, { body: JSON.stringify({ ...json, stream: true }), headers: to(scope) })
  const blocks = (await response.text()).split('\n\n').filter(Boolean)
  return blocks.map((block) => {
    const [name = '', data = ''] = block.split('\n')
    return { name: name.slice('event: '.length), data: JSON.parse(data.slice('data: '.length)) }
  })
}

test('a response of OpenAI has its text and calls, and takes their outputs', async () => {
  const scope = freshScope('answered')
  const path = '/v1/openai/responses'
  const tools = [{ type: 'function', name: 'get_weather', parameters, strict: false }]
  const first = await call(path, { json: { model: 'm', input: 'weather in Bern', instructions: 'Be brief.', tools }, headers: to(scope) })
  expect(first).toMatchObject({
    status: 200,
    body: { object: 'response', status: 'completed', output: [{ type: 'function_call', name: 'get_weather' }] },
  })
  const [made] = first.body.output
  const input = [
    { role: 'user', content: 'weather in Bern' },
    made,
    { type: 'function_call_output', call_id: made.call_id, output: 'blue' },
  ]
  const second = await call(path, { json: { model: 'm', input, tools }, headers: to(scope) })
  expect(second.body.output).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text: 'Now: blue' }] }])
  expect(second.headers.get('x-reflex-trace')).toBe(first.headers.get('x-reflex-trace'))
  const stored = await call(path, { json: { model: 'm', input: 'hi', previous_response_id: 'resp_1' }, headers: to(scope) })
  expect(stored).toMatchObject({ status: 400, body: { error: { type: 'invalid_request_error' } } })
})

test('a response of OpenAI is streamed by its events', async () => {
  const scope = freshScope('answered')
  const said = await eventsOf('/v1/openai/responses', { model: 'm', input: 'one two three four' }, scope)
  expect(said.map(({ data }) => data.sequence_number)).toEqual(said.map((_, index) => index))
  expect([...new Set(said.map(({ name }) => name))]).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  const tools = [{ type: 'function', name: 'get_weather', parameters }]
  const called = await eventsOf('/v1/openai/responses', { model: 'm', input: 'weather in Bern', tools }, scope)
  expect(called.find(({ name }) => name === 'response.function_call_arguments.done')?.data).toMatchObject({ arguments: '{"city":"Bern"}' })
  expect(called.at(-1)?.data.response.output).toMatchObject([{ type: 'function_call', name: 'get_weather', arguments: '{"city":"Bern"}' }])
})

test('a message of Anthropic has its text and calls, and takes their results', async () => {
  const scope = freshScope('answered')
  const tools = [{ name: 'get_weather', input_schema: parameters }]
  const user = { role: 'user', content: 'weather in Bern' }
  const asked = { model: 'm', max_tokens: 100, system: 'Be brief.', tools }
  const headers = { ...to(scope), 'x-api-key': adminKey }
  const first = await call('/v1/anthropic/v1/messages', { key: null, json: { ...asked, messages: [user] }, headers })
  expect(first).toMatchObject({
    status: 200,
    body: {
      type: 'message',
      role: 'assistant',
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', name: 'get_weather', input: { city: 'Bern' } }],
    },
  })
  const [use] = first.body.content
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: [{ type: 'text', text: 'blue' }] }] }
  const messages = [user, { role: 'assistant', content: first.body.content }, result]
  const second = await call('/v1/anthropic/messages', { json: { ...asked, messages }, headers: to(scope) })
  expect(second.body).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'Now: blue' }] })
  expect(second.headers.get('x-reflex-trace')).toBe(first.headers.get('x-reflex-trace'))
  const refused = await call('/v1/anthropic/messages', { key: null, json: {}, headers: { 'x-api-key': 'wrong' } })
  expect(refused).toMatchObject({ status: 401, body: { type: 'error', error: { type: 'authentication_error' } } })
})

test('a message of Anthropic is streamed by its events', async () => {
  const scope = freshScope('answered')
  const asked = { model: 'm', max_tokens: 100, tools: [{ name: 'send_mail', input_schema: parameters }] }
  const events = await eventsOf(
    '/v1/anthropic/messages',
    { ...asked, messages: [{ role: 'user', content: 'write to ada@example.com' }] },
    scope,
  )
  expect(events.map(({ name }) => name)).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
  expect(events.at(-2)?.data).toMatchObject({ delta: { stop_reason: 'tool_use' }, usage: { output_tokens: expect.any(Number) } })
})
