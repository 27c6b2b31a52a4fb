import { expect, test } from 'vitest'
import { openaiResponses } from '../../../src/features/one-url/http/openai-responses.ts'

const answer = { id: 'one', model: 'm', at: 1, text: 'It is', calls: [], input_tokens: 3, output_tokens: 2 }
const body = { model: 'm', input: 'hi' }

test.each([
  ['stop', { status: 'completed', incomplete_details: null }],
  ['tool-calls', { status: 'completed', incomplete_details: null }],
  ['length', { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }],
  ['content-filter', { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }],
])('a response that ended by %s says so, as a whole and as a stream', (finish, expected) => {
  expect(openaiResponses.whole({ ...answer, finish }, body)).toMatchObject(expected)
  const events = openaiResponses.writer(answer, body).write({ line: 'end', finish, input_tokens: 3, output_tokens: 2 })
  expect(JSON.parse(events.at(-1)?.split('data: ')[1] ?? '')).toMatchObject({ type: `response.${expected.status}`, response: expected })
})
