import { readEpisodes, scopeSource } from '../../../../src/features/learning/episodes/read.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { call, keyFor, problem, scopePath, type Answer } from '../../../support/http.ts'
import { outside, type OutsideRequest } from '../../../support/mock-fetch.ts'
import { byAgent, createVersion } from '../../../support/reflexes.ts'
import { DECIDED, HOST } from '../../../support/scope-with-remote-tools.ts'
import { crash, entriesOf, freshScope, stubOf, until } from '../../../support/scopes.ts'

const team = { type: 'choice', instructions: 'Who handles this?', criteria: { billing: 'charged twice refund', support: 'broken crash' } }
const request = { state: 'I was charged twice, refund please', questions: { team } }
const decide = (scope: string, json: unknown = request, { headers = {}, key, query = '' }: Asking = {}): Promise<Answer> =>
  call(`${scopePath(scope)}/decisions${query}`, { json, headers, ...(key !== undefined && { key }) })
type Asking = { headers?: Record<string, string>; key?: string; query?: string }

const yes = { answers: { team: { type: 'choice', choice: 'billing', probabilities: { billing: 0.97, support: 0.03 }, confidence: 0.9 } } }
const answered = (body: unknown, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers })
let network: ReturnType<typeof outside> | undefined
afterEach(() => network?.restore())
/** The decision model answers each request in turn; the last answer is repeated. */
function model(...answers: ((request: OutsideRequest) => Response | Promise<Response>)[]) {
  let next = 0
  network = outside(HOST, (sent) => (answers[next++] ?? answers.at(-1) ?? (() => answered(yes)))(sent))
  return network.requests
}

describe('POST /v1/scopes/{scope}/decisions', () => {
  test('answers each type of question with probabilities, and logs the call', async () => {
    const scope = freshScope()
    const questions = {
      team,
      refund: { type: 'noul', instructions: 'refund', criteria: { true: 'charged money back', false: 'thanks' } },
      urgency: { type: 'score', criteria: ['calm', 'charged twice', 'lawyer'] },
    }
    const { status, body } = await decide(scope, { model: 'any', state: { text: request.state }, questions })
    expect(status).toBe(200)
    expect(body).toMatchObject({ model: 'offline', reflex: { by: 'model' }, usage: { output_tokens: 0 } })
    expect(body.answers).toMatchObject({
      team: { type: 'choice', choice: 'billing' },
      refund: { type: 'noul' },
      urgency: { type: 'score' },
    })
    expect(body.answers.refund.noul).toBeGreaterThan(0.5)
    expect(body.answers.urgency.score).toBeCloseTo(1, 1)
    expect(body.answers.team.probabilities.billing + body.answers.team.probabilities.support).toBeCloseTo(1)
    expect(await entriesOf(stubOf(scope), 'decision-made')).toMatchObject([
      { model: 'offline', status: 'ok', answers: body.answers, event_ids: [body.id], usage: { model_calls: 1, cost_usd: 0 } },
    ])
    expect(await stubOf(scope).state()).toMatchObject({ context: { events: 0 }, counters: { model_calls: 1, turns: 0, completed: 1 } })
  })

  test('forwards the request in the shape of the API, with the name of its model', async () => {
    const scope = freshScope(DECIDED)
    const sent = model(() => answered({ model: 'jev-1.14.0', ...yes, usage: { input_tokens: 31, output_tokens: 0 } }))
    const { body } = await decide(scope, { ...request, model: 'jev-latest' })
    expect(body).toMatchObject({ model: 'jev-1.14.0', ...yes, usage: { input_tokens: 31 } })
    expect(sent.map((one) => JSON.parse(one.body))).toEqual([{ ...request, model: 'jev-latest' }])
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer system-one-secret')
    expect(await entriesOf(stubOf(scope), 'decision-made')).toMatchObject([{ model: 'system-one/jev-latest', answered_by: 'jev-1.14.0' }])
  })

  test.each<[string, unknown, string]>([
    ['no JSON', 'billing', 'is not JSON'],
    ['no answer to a question', { answers: {} }, 'exactly one answer'],
    ['an option that was not asked', { answers: { team: { type: 'choice', choice: 'sales' } } }, 'unknown option'],
    ['an answer of another type', { answers: { team: { type: 'noul', noul: 1 } } }, 'wrong type'],
    ['a probability above 1', { answers: { team: { ...yes.answers.team, probabilities: { billing: 7, support: -6 } } } }, 'in [0, 1]'],
    [
      'probabilities that do not add up',
      { answers: { team: { ...yes.answers.team, probabilities: { billing: 0.6, support: 0 } } } },
      'sum to 1',
    ],
    ['a choice that is not the likeliest', { answers: { team: { ...yes.answers.team, choice: 'support' } } }, 'highest-probability'],
    ['a field of every object', { answers: JSON.parse('{"team": {"type": "choice", "choice": "constructor"}}') }, 'unknown option'],
    ['more than a megabyte', { answers: {}, padding: 'x'.repeat(1_000_001) }, 'takes more than'],
    ['nothing but null', null, 'exactly one answer'],
  ])('refuses a model that answers with %s', async (_what, body, detail) => {
    const scope = freshScope(DECIDED)
    model(() => (typeof body === 'string' ? new Response(body) : answered(body)))
    const answer = await decide(scope, { ...request, model: 'jev' })
    expect(answer).toMatchObject(problem(502))
    expect(answer.body).toMatchObject({ type: 'urn:reflex:problem:decision-failed', detail: expect.stringContaining(detail) })
    expect(await entriesOf(stubOf(scope), 'decision-made')).toMatchObject([{ status: 'failed', answers: null }])
  })

  test('retries a model that is busy, and answers once it answers', async () => {
    const scope = freshScope(DECIDED)
    const sent = model(
      () => answered({ error: 'busy' }, 429),
      () => answered(yes),
    )
    expect((await decide(scope, { ...request, model: 'jev' })).body).toMatchObject(yes)
    expect(sent).toHaveLength(2)
    expect((await entriesOf(stubOf(scope), 'decision-made')).map(({ status }) => status)).toEqual(['failed', 'ok'])
  })

  test('asks a model again that refused, if the request is repeated under its key', async () => {
    const scope = freshScope(DECIDED)
    const headers = { 'Idempotency-Key': 'one' }
    const sent = model(
      () => answered({ error: 'no credit, system-one-secret' }, 402),
      () => answered(yes),
    )
    const refused = await decide(scope, { ...request, model: 'jev' }, { headers })
    expect(refused).toMatchObject(problem(502))
    expect(refused.text).toContain('HTTP 402')
    expect(refused.text).not.toContain('system-one-secret')
    const repeated = await decide(scope, { ...request, model: 'jev' }, { headers })
    expect(repeated.body).toMatchObject({ ...yes, id: refused.body.id })
    expect(sent).toHaveLength(2)
  })

  test('answers a repeated request as before, and asks nobody', async () => {
    const scope = freshScope(DECIDED)
    const headers = { 'Idempotency-Key': 'one' }
    const sent = model(() => answered(yes))
    const [first, again] = [
      await decide(scope, { ...request, model: 'jev' }, { headers }),
      await decide(scope, { ...request, model: 'jev' }, { headers }),
    ]
    expect(again.body).toEqual(first.body)
    expect(sent).toHaveLength(1)
    expect(await decide(scope, { ...request, state: 'another' }, { headers })).toMatchObject(problem(409))
    const other = await keyFor(['publisher'], ['*'])
    expect((await decide(scope, { ...request, model: 'jev' }, { headers, key: other })).body.id).not.toBe(first.body.id)
  })

  test('responds once the time is up, and keeps the answer for the repeated request', async () => {
    const scope = freshScope(DECIDED)
    const headers = { 'Idempotency-Key': 'slow' }
    const gate = Promise.withResolvers<void>()
    model(async () => (await gate.promise, answered(yes)))
    const late = await decide(scope, { ...request, model: 'jev' }, { headers, query: '?timeout_ms=20' })
    expect(late).toMatchObject(problem(504))
    expect(late.headers.get('Retry-After')).toBe('1')
    gate.resolve()
    expect((await decide(scope, { ...request, model: 'jev' }, { headers })).body).toMatchObject(yes)
  })

  test('is still answered if the scope dies while the model is asked', async () => {
    const scope = freshScope(DECIDED)
    const headers = { 'Idempotency-Key': 'crash' }
    const never = new Promise<Response>(() => {})
    const sent = model(
      () => never,
      () => answered(yes),
    )
    await decide(scope, { ...request, model: 'jev' }, { headers, query: '?timeout_ms=20' })
    await until(async () => sent.length === 1, 'the model was asked')
    await (await crash(scope)).poke()
    expect((await decide(scope, { ...request, model: 'jev' }, { headers })).body).toMatchObject(yes)
    expect(await entriesOf(stubOf(scope), 'event-ended')).toHaveLength(1)
  })

  test('asks nobody once the token budget is spent', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ token_budget: { tokens: 0, per: 'day' } }, 'a test')
    const answer = await decide(scope)
    expect(answer).toMatchObject(problem(502))
    expect(answer.body.detail).toContain('token budget')
    expect(await entriesOf(stubOf(scope), 'decision-made')).toEqual([])
  })

  test.each<[string, object, number]>([
    ['no questions', { state: 'x', questions: {} }, 400],
    ['a question of an unknown type', { state: 'x', questions: { a: { type: 'box' } } }, 400],
    ['one option', { state: 'x', questions: { a: { type: 'choice', criteria: { only: null } } } }, 400],
    ['a noul question about nothing', { state: 'x', questions: { a: { type: 'noul' } } }, 400],
    ['an unknown field', { ...request, stream: true }, 400],
    ['a state that is a number', { ...request, state: 7 }, 400],
    ['a state of 100 kB', { ...request, state: { text: 'x'.repeat(100_000) } }, 413],
  ])('refuses %s', async (_what, json, status) => {
    expect(await decide(freshScope(), json)).toMatchObject(problem(status))
  })
})

test('the answers of a scope are read as episodes, those of which the model was sure', async () => {
  const scope = freshScope(DECIDED)
  const unsure = { answers: { team: { ...yes.answers.team, probabilities: { billing: 0.6, support: 0.4 } } } }
  model(
    () => answered(yes),
    () => answered(unsure),
  )
  for (const state of ['one', 'two']) await decide(scope, { ...request, state, model: 'jev' })
  const { episodes, skipped } = await readEpisodes(scopeSource(stubOf(scope)))
  expect(episodes).toMatchObject([
    {
      teacher: { by: 'pull', model: 'system-one/jev' },
      saw: { event: { type: 'decision.asked', state: 'one' } },
      acts: [{ kind: 'reply', input: { content: '{"team":"billing"}' } }],
      usage: { model_calls: 1 },
    },
  ])
  expect(skipped).toEqual([{ reason: 'the decision model was not sure of an answer', count: 1 }])
})

describe('a reflex', () => {
  const replying = (reply: string) => `function reflex({ event }) {
    return event.type === 'decision.asked' && event.state.includes('refund') ? { action_type: 'reply', content: '${reply}' } : null
  }`
  const withReflex = async (reply: string, state: 'active' | 'shadow' = 'active') => {
    const scope = freshScope(DECIDED)
    const { id } = await createVersion({ code: replying(reply), state })
    await stubOf(scope).configure({ reflexes: [{ id }] }, 'a test')
    return { scope, id }
  }

  test('answers in the place of the model, with all probability on its value', async () => {
    const { scope, id } = await withReflex('{"team":"billing"}')
    const sent = model(() => answered(yes))
    const { body } = await decide(scope, { ...request, model: 'jev' })
    expect(body).toMatchObject({
      model: `reflex/${id}@1`,
      answers: { team: { type: 'choice', choice: 'billing', probabilities: { billing: 1, support: 0 } } },
      usage: { input_tokens: 0 },
      reflex: { by: 'reflex', reflex_id: id, version: 1 },
    })
    expect(sent).toEqual([])
    expect((await decide(scope, { ...request, state: 'it crashes', model: 'jev' })).body.reflex).toMatchObject({ by: 'model' })
  })

  test.each(['{"team":"sales"}', '{"team":null}', '{}', 'billing'])('that replies %s leaves the request to the model', async (reply) => {
    const { scope } = await withReflex(reply)
    model(() => answered(yes))
    expect((await decide(scope, { ...request, model: 'jev' })).body.reflex).toMatchObject({ by: 'model' })
    expect(await entriesOf(stubOf(scope), 'reflex-passed')).toMatchObject([{ reason: 'refused' }])
  })

  test('that answers is replayed, and a change of its code says which requests would be left to the model', async () => {
    const { scope, id } = await withReflex('{"team":"billing"}')
    model(() => answered(yes))
    const traces = [(await decide(scope)).body.reflex.trace_id]
    traces.push((await decide(scope, { ...request, state: 'it crashes', model: 'jev' })).body.reflex.trace_id)
    const replayed = async (trace_id: string, json: object) =>
      (await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json })).body
    for (const trace_id of traces) expect(await replayed(trace_id, {})).toMatchObject({ equivalent: true, changed: 0, unknown: [] })
    const answering = `function reflex(context) { return { action_type: 'reply', content: '{"team":"support"}' } }`
    expect(await replayed(traces[1], { mode: 'what_if', changes: { reflex_code: { [id]: answering } } })).toMatchObject({
      divergences: expect.arrayContaining([
        expect.objectContaining({ kind: 'decision', recorded: 'asked', replayed: `answered by ${id}` }),
      ]),
      recorded: { usage: { model_calls: 1 } },
      replayed: { usage: { model_calls: 0 } },
    })
  })

  test('of the agent is promoted by proof, answers, and audits by the model find that it is wrong by now', async () => {
    const scope = freshScope(DECIDED)
    const { id } = await createVersion({ code: replying('{"team":"billing"}'), state: 'shadow', ...byAgent(scope) })
    await stubOf(scope).configure({ reflexes: [{ id }], learning: { mode: 'auto', min_agreement: 0.95, audit_share: 1 } }, 'a test')
    let choice = 'billing'
    const answer = () => ({ team: { type: 'choice', choice, probabilities: { billing: 0.03, support: 0.03, [choice]: 0.97 } } })
    model(() => answered({ answers: answer() }))
    const by = async (state: string) => (await decide(scope, { ...request, state, model: 'jev' })).body.reflex.by
    let count = 0
    for (; count < 150 && (await by(`refund ${count}`)) === 'model'; count += 1);
    expect(await by('refund, once more')).toBe('reflex')
    expect(count).toBeGreaterThan(60)
    choice = 'support'
    const drifted = async () => (await entriesOf(stubOf(scope), 'certificate-changed')).some(({ change }) => change === 'drifted')
    for (let audits = 0; audits < 60 && !(await drifted()); audits += 1) await by(`refund again ${audits}`)
    await until(drifted, 'the audits found the drift')
    expect(await by('refund, at last')).toBe('model')
  }, 300_000)

  test('in shadow mode is compared with the answer of the model, if the model is sure', async () => {
    const { scope } = await withReflex('{"team":"billing"}', 'shadow')
    const unsure = { answers: { team: { ...yes.answers.team, probabilities: { billing: 0.6, support: 0.4 } } } }
    model(
      () => answered(yes),
      () => answered(unsure),
    )
    for (const state of ['refund', 'refund, maybe']) await decide(scope, { ...request, state, model: 'jev' })
    expect(await entriesOf(stubOf(scope), 'reflex-compared')).toMatchObject([
      { agreed: true, decision: { acts: [{ act: 'reply', content: '{"team":"billing"}' }] } },
      { agreed: false, decision: { acts: [{ act: 'reply', content: '{"team":null}' }] } },
    ])
  })
})
