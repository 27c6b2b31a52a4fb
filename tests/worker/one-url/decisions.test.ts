import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { setReflexState } from '../../../src/artifacts/kinds.ts'
import { certify } from '../../support/certificates.ts'
import { call } from '../../support/http.ts'
import { write } from '../../support/reflex-chain.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { entriesOf, freshScope, logOf, stubOf } from '../../support/scopes.ts'

const CHAT = '/v1/openai/chat/completions'
const TOOLS = [{ type: 'function', function: { name: 'get_weather', parameters: { type: 'object' } } }]
const ask = (scope: string, content: string, more: object = {}) =>
  call(CHAT, { json: { model: 'm', messages: [{ role: 'user', content }], tools: TOOLS, ...more }, headers: { 'x-reflex-scope': scope } })
const replay = (scope: string, trace_id: string | null, json: object) =>
  call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json })

const calling = `function reflex({ event }) {
  return { action_type: 'call_tool', tool: 'caller.get_weather', args: { city: event.content.split(' ').at(-1) } }
}`

describe('a trace of requests', () => {
  test('is replayed as it was, and says what a reflex would have changed', async () => {
    const scope = freshScope('answered')
    const answer = await ask(scope, 'weather in Bern')
    const trace_id = answer.headers.get('x-reflex-trace')
    const same = await replay(scope, trace_id, { mode: 'pinned' })
    expect(same).toMatchObject({ status: 200, body: { equivalent: true, divergences: [], unknown: [] } })
    expect(same.body.compared).toBeGreaterThan(2)
    const { id } = await createVersion({ code: replying('It is warm.') })
    const changed = await replay(scope, trace_id, { mode: 'what_if', changes: { settings: { reflexes: [{ id }] } } })
    expect(changed).toMatchObject({ status: 200, body: { equivalent: false, replayed: { usage: { model_calls: 0 } } } })
  })
})

describe('a reflex', () => {
  test('answers in place of the model, with no usage', async () => {
    const scope = freshScope('answered')
    const { id, version } = await createVersion({ code: replying('It is warm.') })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    const answer = await ask(scope, 'weather in Bern')
    expect(answer.headers.get('x-reflex-decided-by')).toBe(`reflex:${id}@${version}`)
    expect(answer.body).toMatchObject({
      choices: [{ message: { content: 'It is warm.' }, finish_reason: 'stop' }],
      usage: { total_tokens: 0 },
    })
    expect((await logOf(stubOf(scope))).map(({ kind }) => kind)).not.toContain('model-called')
  })

  test('makes a call that the caller runs, of a tool that the request offers', async () => {
    const scope = freshScope('answered')
    const { id } = await createVersion({ code: calling })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    const { body } = await ask(scope, 'weather in Bern')
    expect(body.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ function: { name: 'get_weather', arguments: '{"city":"Bern"}' } }] },
    })
    // Without the tool, the reflex may not act, and the model answers.
    const other = await ask(scope, 'weather in Bern', { tools: [] })
    expect(other.headers.get('x-reflex-decided-by')).toBeNull()
    expect(await entriesOf(stubOf(scope), 'reflex-passed')).toMatchObject([
      { reason: 'refused', error: 'the request offers no tool caller.get_weather' },
    ])
    const trace = await replay(scope, other.headers.get('x-reflex-trace'), { mode: 'pinned' })
    expect(trace).toMatchObject({ body: { equivalent: true, divergences: [], unknown: [] } })
  })

  test.each([
    ['by proof alone', [], true],
    ['only after a person, where the setting says so', ['caller.get_*'], false],
  ])("makes a proven call of a caller's tool %s", async (_, final_tools, acts) => {
    const scope = freshScope('answered')
    const made = await write(`return { action_type: 'call_tool', tool: 'caller.get_weather', args: { city: 'Bern' } }`, {
      scope,
      state: 'shadow',
    })
    await setReflexState(env.DB, { ...made, state: 'active', reason: 'proven', by_proof: true, now: Date.now() })
    await stubOf(scope).configure({ reflexes: [{ id: made.id }], learning: { mode: 'auto', final_tools } }, 'a test')
    const { agent } = await stubOf(scope).chain()
    await certify(scope, made, {
      event_type: 'model.asked',
      act: 'caller.get_weather',
      risk: 'outside',
      agent_version: agent.version ?? agent.name,
    })
    const answer = await ask(scope, 'weather in Bern')
    expect(answer.headers.get('x-reflex-decided-by')).toBe(acts ? `reflex:${made.id}@${made.version}` : null)
    expect(answer.body.choices[0]).toMatchObject({ finish_reason: 'tool_calls' })
    expect(await entriesOf(stubOf(scope), 'reflex-passed')).toMatchObject(acts ? [] : [{ reason: 'uncertified' }])
  })
})
