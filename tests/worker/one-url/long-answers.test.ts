import { afterEach, expect, test } from 'vitest'
import { call } from '../../support/http.ts'
import { outside } from '../../support/mock-fetch.ts'
import { HOST, PRICED } from '../../support/scope-with-remote-tools.ts'
import { entriesOf, freshScope, stubOf } from '../../support/scopes.ts'

let provider: ReturnType<typeof outside> | undefined
afterEach(() => {
  provider?.restore()
  provider = undefined
})

const CHAT = ['openai/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'hello' }] }] as const
const RESPONSES = ['openai/responses', { model: 'm', input: 'hello' }] as const
// Few tokens: its scopes share a budget.
const MESSAGES = ['anthropic/messages', { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }] as const

/** A provider whose answer has so many bytes, in pieces of a kilobyte where it streams. */
function saying(bytes: number): void {
  const whole = { id: 'a', model: 'priced', choices: [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(bytes) } }] }
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
  const piece = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'a', model: 'priced', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const stream = () => {
    const pieces = Array.from({ length: Math.ceil(bytes / 1000) }, () => piece({ content: 'x'.repeat(1000) }))
    const text = [piece({ role: 'assistant' }), ...pieces, piece({}, 'stop'), 'data: [DONE]\n\n'].join('')
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  }
  provider = outside(HOST, ({ body }) =>
    body.includes('"stream":true')
      ? stream()
      : Response.json({ ...whole, choices: [{ ...whole.choices[0], finish_reason: 'stop' }], usage }),
  )
}

test.each([CHAT, RESPONSES, MESSAGES])('an answer of 256 kB is passed on by %s', async (path, json) => {
  saying(256_000)
  const { status, text } = await call(`/v1/${path}`, { json, headers: { 'x-reflex-scope': freshScope(PRICED) } })
  expect(status).toBe(200)
  expect(text).toContain('x'.repeat(256_000))
})

test.each([CHAT, RESPONSES, MESSAGES])(
  'an answer above 256 kB is an error of %s that says the limit and what to do',
  async (path, json) => {
    saying(256_001)
    const scope = freshScope(PRICED)
    const { status, body, headers } = await call(`/v1/${path}`, { json, headers: { 'x-reflex-scope': scope } })
    expect({ status, message: body.error.message }).toEqual({
      status: 502,
      message: expect.stringMatching(/longer than 256000 bytes.*ask for less, such as by max_tokens/),
    })
    // A client that repeats what fails would pay for the same answer again.
    expect(headers.get('x-should-retry')).toBe('false')
    // In a page, the client reads only the headers that are named here.
    expect(headers.get('Access-Control-Expose-Headers')?.split(',')).toEqual(
      expect.arrayContaining(['x-should-retry', 'x-reflex-unrecorded', 'x-reflex-trace']),
    )
    expect(headers.get('x-reflex-trace')).toMatch(/^[0-9a-f]{32}$/)
    expect(await entriesOf(stubOf(scope), 'turn-ended')).toMatchObject([
      { status: 'failed', error: expect.stringContaining('256000 bytes') },
    ])
  },
)

test.each([CHAT, RESPONSES, MESSAGES])('a stream of %s ends with that error where the limit is passed', async (path, json) => {
  saying(400_000)
  const scope = freshScope(PRICED)
  const { status, text } = await call(`/v1/${path}`, { json: { ...json, stream: true }, headers: { 'x-reflex-scope': scope } })
  expect(status).toBe(200)
  expect(text.split('\n').findLast((line) => line.startsWith('data: {'))).toContain('longer than 256000 bytes')
  expect(text.match(/x{1000}/g)?.length).toBe(256)
  expect(await entriesOf(stubOf(scope), 'model-called')).toHaveLength(1)
})
