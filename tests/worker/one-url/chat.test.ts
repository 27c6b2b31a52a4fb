import { describe, expect, test } from 'vitest'
import { call, fetchRaw, keyFor, type Call } from '../../support/http.ts'
import { entriesOf, freshScope, inObject, logOf, stubOf } from '../../support/scopes.ts'

const CHAT = '/v1/openai/chat/completions'
const WEATHER = {
  type: 'function',
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
}
const said = (content: string, more: object = {}) => ({ model: 'gpt-5-mini', messages: [{ role: 'user', content }], ...more })
const chat = (scope: string, json: object, more: Call = {}) =>
  call(CHAT, { json, ...more, headers: { 'x-reflex-scope': scope, ...more.headers } })

/** Counts transactions that write the log, and their statements: alarms have others. */
function countRecorded(storage: DurableObjectStorage): { statements: number; transactions: number } {
  const made = { statements: 0, transactions: 0 }
  const { sql } = storage
  const exec = sql.exec.bind(sql)
  const transactionSync = storage.transactionSync.bind(storage)
  let ran: string[] = []
  sql.exec = ((query: string, ...bindings: unknown[]) => {
    ran.push(query)
    return exec(query, ...bindings)
  }) as typeof sql.exec
  storage.transactionSync = (work) => {
    ran = []
    const result = transactionSync(work)
    if (ran.some((query) => query.startsWith('INSERT INTO log '))) {
      made.transactions += 1
      made.statements += ran.length
    }
    return result
  }
  return made
}

describe('a chat completion', () => {
  test('is answered in the form of OpenAI, and recorded as one decision in one trace', async () => {
    const scope = freshScope('answered')
    const answer = await chat(scope, said('hello'))
    expect(answer).toMatchObject({
      status: 200,
      body: {
        object: 'chat.completion',
        model: 'offline',
        choices: [{ index: 0, message: { role: 'assistant', content: 'You said: hello' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) },
      },
    })
    const trace_id = answer.headers.get('x-reflex-trace')
    const log = await logOf(stubOf(scope))
    expect(new Set(log.map((entry) => entry.trace_id))).toEqual(new Set([trace_id]))
    expect(log.map(({ kind }) => kind)).toEqual([
      'event-accepted',
      'turn-started',
      'model-called',
      'reply-sent',
      'turn-ended',
      'event-ended',
    ])
    expect(await entriesOf(stubOf(scope), 'turn-ended')).toMatchObject([
      { status: 'result', acts: [{ act: 'reply', content: 'You said: hello' }], usage: { model_calls: 1 } },
    ])
  })

  test('is recorded by ten statements in two transactions', async () => {
    const scope = freshScope('answered')
    // The first request of a scope keeps its settings, too.
    await chat(scope, said('hello'))
    const made = await inObject(stubOf(scope), ({ storage }) => countRecorded(storage))
    await chat(scope, said('hello again'))
    expect(made).toMatchObject({ statements: 10, transactions: 2 })
  })

  test('hands a call of a tool over, and the output joins the trace of the call', async () => {
    const scope = freshScope('answered')
    const first = await chat(scope, said('What is the weather in Bern?', { tools: [WEATHER] }))
    const [choice] = first.body.choices
    expect(choice).toMatchObject({ finish_reason: 'tool_calls', message: { content: null } })
    const [made] = choice.message.tool_calls
    expect(made).toMatchObject({ type: 'function', function: { name: 'get_weather', arguments: '{"city":"Bern"}' } })
    const messages = [
      { role: 'user', content: 'What is the weather in Bern?' },
      choice.message,
      { role: 'tool', tool_call_id: made.id, content: '{"sky":"blue"}' },
    ]
    const second = await chat(scope, { model: 'gpt-5-mini', messages, tools: [WEATHER] })
    expect(second.body.choices[0].message.content).toBe('Now: {"sky":"blue"}')
    expect(second.headers.get('x-reflex-trace')).toBe(first.headers.get('x-reflex-trace'))
    expect(await entriesOf(stubOf(scope), 'effect-started')).toMatchObject([{ tool: 'caller.get_weather', input: { city: 'Bern' } }])
  })

  test.each([
    ['an output', '{}', '{"a":'.repeat(20_000) + '1' + '}'.repeat(20_000)],
    ['arguments', '{"a":'.repeat(20_000) + '1' + '}'.repeat(20_000), 'done'],
  ])('takes %s with more levels than are kept', async (_, args, content) => {
    const tool_calls = [{ id: 'a', type: 'function', function: { name: 'get_weather', arguments: args } }]
    const messages = [
      { role: 'user', content: 'What is the weather in Bern?' },
      { role: 'assistant', content: null, tool_calls },
      { role: 'tool', tool_call_id: 'a', content },
    ]
    expect(await chat(freshScope('answered'), { model: 'any', messages, tools: [WEATHER] })).toMatchObject({ status: 200 })
  })

  test('takes its scope from the user, and else from the key', async () => {
    const by_user = await call(CHAT, { json: said('hello', { user: 'ada' }) })
    expect(by_user.headers.get('x-reflex-scope')).toBe('user/ada')
    const key = await keyFor(['publisher'], ['*'], 'robot')
    const by_key = await call(CHAT, { json: said('hello'), key })
    expect(by_key.headers.get('x-reflex-scope')).toBe('key/robot')
  })

  test('has a scope of its own for each name of a user, of whatever characters', async () => {
    const scopeOf = async (user: string) => (await call(CHAT, { json: said('hello', { user }) })).headers.get('x-reflex-scope')
    expect(await scopeOf('org:alice@example.com')).toBe('user/org:alice@example.com')
    const [accents, others] = [
      ['jörg', 'järg', 'j_rg', 'j:C3:B6rg'],
      ['a b', 'a_b', 'a/b', '山'.repeat(40), '山'.repeat(41)],
    ]
    const scopes = await Promise.all([...accents, ...others].map(scopeOf))
    expect(new Set(scopes).size).toBe(accents.length + others.length)
    expect(scopes.filter((scope) => scope === null)).toEqual([])
  })

  test('is refused in the form of OpenAI', async () => {
    const failure = (status: number) => ({
      status,
      type: 'application/json',
      body: { error: { message: expect.any(String), type: expect.any(String) } },
    })
    expect(await call(CHAT, { json: said('hello'), key: 'nobody' })).toMatchObject(failure(401))
    const key = await keyFor(['publisher'], ['mine/*'], 'mine')
    expect(await call(CHAT, { json: said('hello'), key })).toMatchObject(failure(403))
    expect(await call(CHAT, { json: said('hello'), key: await keyFor(['viewer']) })).toMatchObject(failure(403))
    expect(await call(CHAT, { json: { model: 'gpt-5-mini' } })).toMatchObject(failure(400))
    expect(await call(CHAT, { json: said('hello', { n: 2 }) })).toMatchObject(failure(400))
    expect(await call(CHAT, { body: '{', type: 'application/json' })).toMatchObject(failure(400))
    expect(await call('/v1/openai/nothing', { json: {} })).toMatchObject(failure(404))
    expect(await call(CHAT, { json: said('x'.repeat(5_000_000)) })).toMatchObject(failure(413))
    expect(await call(CHAT, { json: said('break down', { user: 'ada' }) })).toMatchObject(failure(500))
  })

  test('streams in the form of OpenAI', async () => {
    const scope = freshScope('answered')
    const json = said('one two three four five', { stream: true, stream_options: { include_usage: true } })
    const response = await fetchRaw(CHAT, { body: JSON.stringify(json), headers: { 'x-reflex-scope': scope } })
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const events = (await response.text()).split('\n\n').filter(Boolean)
    expect(events.at(-1)).toBe('data: [DONE]')
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)))
    const text = chunks
      .flatMap(({ choices }) => choices)
      .map(({ delta }) => delta.content ?? '')
      .join('')
    expect(text).toBe('You said: one two three four five')
    expect(chunks.length).toBeGreaterThan(4)
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } })
  })
})
