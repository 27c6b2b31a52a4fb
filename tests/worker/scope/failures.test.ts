import { APICallError } from '@ai-sdk/provider'
import { env } from 'cloudflare:workers'
import { streamText } from 'ai'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  crash,
  entriesOf,
  evict,
  freshScope,
  hurry,
  inObject,
  logOf,
  note,
  send,
  sendAndSettle,
  stubOf,
  until,
} from '../../support/scopes.ts'
import { call, keyFor } from '../../support/http.ts'
import { modelSilence } from '../../../src/http/operations/health-report.ts'
import { outside } from '../../support/mock-fetch.ts'
import { scopeStatements } from '../../../src/store/scope-rows.ts'
import { HOST, PRICED } from '../../support/scope-with-remote-tools.ts'
import { ask, behaviours, effects, providers } from '../../support/test-agents.ts'

type Stub = ReturnType<typeof stubOf>

const failure = (statusCode: number, message = 'scripted failure', responseHeaders: Record<string, string> = {}) =>
  new APICallError({ message, url: 'https://model.test', requestBodyValues: {}, statusCode, responseHeaders })

/** A scope whose turns call a model; `answer` is its provider's error, null if it works. */
async function scopeWithModel(retry: Record<string, number> = {}, scope = freshScope()) {
  const stub = stubOf(scope)
  const provider = { asked: 0, failure: failure(503) as Error | null }
  providers.set(scope, () => {
    provider.asked += 1
    return provider.failure
  })
  behaviours.set(scope, async (_, deps) => ({ text: await ask(deps, scope) }))
  await stub.configure({ retry: { backoff_ms: 60_000, ...retry } }, 'test')
  return { scope, stub, provider }
}

const waitsForModel = (stub: Stub) =>
  until(async () => {
    const { waiting_for_model, turn } = await stub.state()
    return turn === null && waiting_for_model
  }, 'the scope waits for its model')

/** As if the time of the next call had come. */
async function comesDue(stub: Stub): Promise<void> {
  await inObject(stub, (state) => {
    const past = JSON.stringify(Date.now() - 1)
    state.storage.sql.exec(`UPDATE state SET value = json_set(value, '$.ask_at', ${past}) WHERE key = 'model_outage' AND value <> 'null'`)
  })
  await evict(stub)
  await hurry(stub)
}

describe('a model provider that is not available', () => {
  test.each([
    ['is busy', failure(503)],
    ['limits the rate', failure(429)],
    ['answers with an error of its own', failure(500)],
    ['cannot be reached', new Error('Network connection lost.')],
  ])('because it %s is waited for, and no attempt is burned', async (_, error) => {
    const { scope, stub, provider } = await scopeWithModel()
    provider.failure = error
    const [id] = await send(stub, note(scope, 'a'))
    const waiting = await waitsForModel(stub)
    expect(waiting).toMatchObject({ tries: 1, detail: expect.stringContaining(error.message) })
    expect(await stub.event(id!)).toMatchObject({
      status: 'pending',
      attempts: 0,
      waiting: {
        reason: 'model',
        since: waiting.since,
        until: waiting.until,
        detail: expect.stringContaining('waiting for the model since'),
      },
    })
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ status: 'waiting', error: expect.stringContaining(error.message) }])
    expect(await entriesOf(stub, 'model-lost')).toMatchObject([{ error: expect.stringContaining(error.message) }])
    expect(provider.asked).toBe(1)
  })

  test('is called by one turn for all events once the time has come, and each continues when it answers', async () => {
    const { scope, stub, provider } = await scopeWithModel()
    const ids = await send(stub, note(scope, 'a'))
    await waitsForModel(stub)
    ids.push(...(await send(stub, note(scope, 'b'))))
    await until(async () => (await stub.state()).inbox.delayed === 2, 'both events wait')
    expect(provider.asked).toBe(1)

    await comesDue(stub)
    await until(async () => (await stub.state()).waiting_for_model?.tries === 2, 'it was asked again')
    expect(provider.asked).toBe(2)
    ids.push(...(await send(stub, note(scope, 'c'))))
    await until(async () => (await stub.state()).inbox.delayed === 3, 'all three events wait')

    provider.failure = null
    await comesDue(stub)
    const { records } = await stub.outcomes(ids, 10_000)
    expect(records.map(({ status, attempts }) => [status, attempts])).toEqual(ids.map(() => ['completed', 1]))
    expect(await entriesOf(stub, 'model-restored')).toMatchObject([{ tries: 2 }])
    expect(await stub.state()).toMatchObject({ waiting_for_model: null, counters: { retried: 0, dead_lettered: 0 } })
  })

  test('is known after a crash, too', async () => {
    const { scope, provider } = await scopeWithModel()
    const [id] = await send(stubOf(scope), note(scope, 'a'))
    const before = await waitsForModel(stubOf(scope))
    const stub = await crash(scope)
    expect((await stub.state()).waiting_for_model).toEqual(before)
    expect((await stub.event(id!))?.waiting).toMatchObject({ reason: 'model', since: before.since })
    expect(provider.asked).toBe(1)
  })

  test('is asked in time also where the clock was ahead when it failed', async () => {
    const { scope, stub } = await scopeWithModel()
    const [id] = await send(stub, note(scope, 'a'))
    await waitsForModel(stub)
    const day_ms = 86_400_000
    await inObject(stub, ({ storage }) => {
      storage.sql.exec(`UPDATE log SET at = at + ${day_ms}`)
      storage.sql.exec(`UPDATE events SET due_at = due_at + ${day_ms}, parked_at = parked_at + ${day_ms}`)
      storage.sql.exec(
        `UPDATE state SET value = json_set(value, '$.ask_at', value->'ask_at' + ${day_ms}, '$.since', value->'since' + ${day_ms})
          WHERE key = 'model_outage'`,
      )
    })
    await evict(stub)
    const waiting = await waitsForModel(stub)
    expect(Date.parse(waiting.until)).toBeLessThan(Date.now() + 61_000)
    expect(Date.parse(waiting.since)).toBeLessThanOrEqual(Date.now())
    expect(Date.parse((await stub.event(id!))!.waiting!.since!)).toBeLessThanOrEqual(Date.now())
  })

  test('stops no turn that needs no model, and no perceiving', async () => {
    const { scope, stub } = await scopeWithModel()
    await send(stub, note(scope, 'a'))
    await waitsForModel(stub)
    behaviours.set(scope, async () => ({ by: 'rules alone' }))
    expect(await sendAndSettle(stub, note(scope, 'b'))).toMatchObject([{ status: 'completed', outcome: { result: { by: 'rules alone' } } }])
    expect((await stub.state()).waiting_for_model).not.toBeNull()
  })

  test.each([
    ['seconds', () => '120', 120_000],
    ['a date', () => new Date(Date.now() + 120_000).toUTCString(), 118_000],
  ])('is not asked before its Retry-After in %s', async (_, retry_after, least_ms) => {
    const { scope, stub, provider } = await scopeWithModel({ backoff_ms: 1 })
    const start = Date.now()
    provider.failure = failure(429, 'slow down', { 'retry-after': retry_after() })
    await send(stub, note(scope, 'a'))
    const { until: asked_at } = await waitsForModel(stub)
    expect(Date.parse(asked_at) - start).toBeGreaterThanOrEqual(least_ms)
  })

  test('is asked at once when the settings change', async () => {
    const { scope, stub, provider } = await scopeWithModel()
    const ids = await send(stub, note(scope, 'a'))
    await waitsForModel(stub)
    provider.failure = null
    await stub.configure({ goal_labels: ['go'] }, 'test')
    expect((await stub.outcomes(ids, 10_000)).records).toMatchObject([{ status: 'completed' }])
  })

  test('is seen in health and in the list of scopes, and is asked at once by a person, whom the log names', async () => {
    const { scope, stub, provider } = await scopeWithModel()
    const key = await keyFor(['operator', 'viewer'], [scope])
    const health = async () => (await call('/health/detailed', { key })).body
    expect((await health()).model_calls).toMatchObject({ status: 'unknown', failures: 0, last_answer_at: null })
    const ids = await send(stub, note(scope, 'a'))
    const { until: asks_at } = await waitsForModel(stub)
    const waiting = await until(async () => {
      const { items } = (await call('/v1/scopes?state=model', { key })).body
      return items[0]
    }, 'the list has it')
    expect(waiting).toMatchObject({ scope, asks_model_at: asks_at })
    const silent = { status: 'silent', failures: 1, scopes_failing: 1, scopes_waiting: 1, asks_at, last_answer_at: null }
    expect(await health()).toMatchObject({ status: 'degraded', model_calls: { ...silent, error: expect.stringContaining('503') } })
    // Each isolate asks D1 once a second for the open route.
    const ready = await until(async () => {
      const answer = await call('/health/ready', { key: null })
      return answer.status === 503 && answer
    }, 'it is not ready')
    expect(ready.body.model).toMatchObject({ ok: false, error: expect.stringContaining('the model does not answer since') })

    provider.failure = null
    const path = `/v1/scopes/${encodeURIComponent(scope)}/ask-model`
    expect((await call(path, { key, method: 'POST' })).body).toMatchObject({ asked: true, tries: 1 })
    expect((await stub.outcomes(ids, 10_000)).records).toMatchObject([{ status: 'completed' }])
    expect(await entriesOf(stub, 'model-hurried')).toMatchObject([{ by: expect.any(String), tries: 1 }])
    await until(async () => (await health()).model_calls.status === 'answering', 'health knows of the answer')
    expect(await health()).toMatchObject({ status: 'ok', model_calls: { failures: 0, scopes_waiting: 0, error: null } })
    expect((await call('/v1/scopes?state=model', { key })).body.items).toEqual([])
    expect((await call(path, { key, method: 'POST' })).body).toEqual({ asked: false, tries: null, waiting_for_model: null })
  })

  test.each([
    ['refuses the key', 401, {}, 3],
    ['refuses each request, which may be too long', 400, {}, 0],
    ['refuses a model that the scope chose', 404, { model: 'openai-compatible/of-the-scope' }, 0],
  ])('is silent for the whole deployment only if it fails everybody, and not where it %s', async (_, status, settings, lost) => {
    await env.DB.exec('UPDATE scopes SET model_failing_since = NULL, model_answered_at = NULL, model_served_at = NULL')
    const network = outside(HOST, () => new Response('{"error": {"message": "no such model"}}', { status }))
    onTestFinished(() => network.restore())
    const { scope, stub } = await scopeWithModel({}, freshScope(`${PRICED}-alone`))
    await stub.configure({ agent: 'test-agent', ...settings }, 'test')
    for (const content of ['a', 'b', 'c']) await sendAndSettle(stub, note(scope, content))
    const row = () => env.DB.prepare('SELECT model_failures, model_lost FROM scopes WHERE scope = ?').bind(scope).first()
    await until(async () => (await row())?.['model_failures'] === 3, 'D1 knows of the failures')
    expect(await row()).toMatchObject({ model_lost: lost })
    expect((await modelSilence(env.DB))?.summary ?? '0 calls failed').toContain(`${lost} calls failed`)
  })

  test('is silent for the whole deployment until it answers itself, whatever models of scopes answer', async () => {
    await env.DB.exec('UPDATE scopes SET model_failing_since = NULL, model_answered_at = NULL, model_served_at = NULL')
    const { scope } = await scopeWithModel()
    const row = {
      scope,
      agent: 'test-agent',
      open: 0,
      wake_at: null,
      updated_at: Date.now(),
      parked: 0,
      spans_exported: 0,
      spans_dropped: 0,
    }
    const failing = { model_failing_since: 1000, model_failures: 3, model_lost: 3, model_error: 'no' }
    const told = (more: object) => env.DB.batch(scopeStatements(env.DB, [{ ...row, ...failing, ...more }]))
    await told({ model_answered_at: 2000, model_served_at: 0 })
    expect(await modelSilence(env.DB)).toMatchObject({ summary: expect.stringContaining('it never answered') })
    await told({ model_answered_at: 2000, model_served_at: 2000 })
    expect(await modelSilence(env.DB)).toBeNull()
    // An earlier version says only that some model answered.
    await told({ model_answered_at: 2000 })
    expect(await modelSilence(env.DB)).toBeNull()
  })

  test('is not waited for longer than model_outage_s', async () => {
    const { scope, stub, provider } = await scopeWithModel({ model_outage_s: 100 })
    const [id] = await send(stub, note(scope, 'a'))
    await waitsForModel(stub)
    const parkedBefore = (ms: number) =>
      inObject(stub, (state) => void state.storage.sql.exec('UPDATE events SET parked_at = parked_at - ?', ms))
    await parkedBefore(50_000)
    await comesDue(stub)
    await until(async () => provider.asked === 2, 'the model is asked again')
    await waitsForModel(stub)
    expect(await stub.event(id!)).toMatchObject({ status: 'pending' })
    await parkedBefore(51_000)
    await comesDue(stub)
    const { records } = await stub.outcomes([id!], 10_000)
    expect(records).toMatchObject([
      { status: 'dead_lettered', attempts: 0, error: expect.stringMatching(/model_outage_s.*scripted failure/) },
    ])
  })

  test('is found behind a stream whose promises only say that nothing came', async () => {
    const { scope, stub } = await scopeWithModel()
    behaviours.set(scope, async (_, deps) => streamText({ model: deps.model, prompt: scope, onError: () => {} }).text)
    await send(stub, note(scope, 'a'))
    expect(await waitsForModel(stub)).toMatchObject({ detail: expect.stringContaining('HTTP 503') })
  })
})

describe('a request that the model provider refuses', () => {
  test.each([400, 401, 403, 404, 422])('with %i is not retried: the dead letter has the status and the text', async (status) => {
    const { scope, stub, provider } = await scopeWithModel()
    provider.failure = failure(status, `scripted refusal of test-admin-key`)
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    const error = `the model provider refused the request (HTTP ${status}): scripted refusal of [secret]`
    expect(record).toMatchObject({ status: 'dead_lettered', attempts: 1, error, outcome: { by: 'failure', reason: error } })
    expect(provider.asked).toBe(1)
    expect(JSON.stringify(await logOf(stub))).not.toContain('test-admin-key')
    expect((await stub.state()).waiting_for_model).toBeNull()
  })

  test('ends the wait for a provider that was not available before', async () => {
    const { scope, stub, provider } = await scopeWithModel()
    const ids = await send(stub, note(scope, 'a'))
    await waitsForModel(stub)
    provider.failure = failure(401)
    await comesDue(stub)
    expect((await stub.outcomes(ids, 10_000)).records).toMatchObject([{ status: 'dead_lettered' }])
    expect((await stub.state()).waiting_for_model).toBeNull()
  })
})

describe("the agent's own error", () => {
  test('costs an attempt, waits as the settings say, and keeps its stack', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ retry: { max_attempts: 2, backoff_ms: 600_000, max_backoff_ms: 500_000 } }, 'test')
    behaviours.set(scope, async function brokenTrigger() {
      throw new TypeError("Cannot read properties of undefined (reading 'x')")
    })
    const [id] = await send(stub, note(scope, 'a'))
    const start = Date.now()
    const { waiting } = await until(async () => {
      const record = await stub.event(id!)
      return record?.status === 'pending' && record.attempts === 1 && record
    }, 'the first attempt failed')
    expect(waiting).toMatchObject({ reason: 'retry', detail: expect.stringMatching(/attempt 1 of 2 failed.*reading 'x'/) })
    expect(Date.parse(waiting!.until!) - start).toBeGreaterThan(240_000)
    expect(Date.parse(waiting!.until!) - start).toBeLessThan(520_000)
    await hurry(stub)
    const { records } = await stub.outcomes([id!], 10_000)
    const stack = expect.stringMatching(/^TypeError: Cannot read[^]*\n +at .*brokenTrigger/)
    expect(records).toMatchObject([{ status: 'dead_lettered', attempts: 2, outcome: { by: 'failure', stack } }])
    expect((await entriesOf(stub, 'turn-ended')).map((entry) => entry.stack)).toEqual([stack, stack])

    await stub.poke()
    const told = () => env.DB.prepare('SELECT stack FROM dead_letters WHERE scope = ?').bind(scope).first<{ stack: string }>()
    expect(await until(told, 'D1 has the dead letter')).toMatchObject({ stack })
  })

  test('in a filter keeps its stack, once for all events that it is about', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    const records = await sendAndSettle(stub, note(scope, 'bad filter 1'), note(scope, 'bad filter 2'))
    const stack = expect.stringMatching(/the filter broke\n +at /)
    expect(records).toMatchObject(records.map(() => ({ status: 'dead_lettered', outcome: { by: 'failure', stack } })))
    const failed = await entriesOf(stub, 'filter-failed')
    expect(failed).toMatchObject([{ agent: 'test-agent', stack }])
    expect(failed[0]?.event_ids).toHaveLength(2)
  })

  test('with a stack of any length is kept within 4 kB', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async () => {
      throw Object.assign(new Error('deep'), { stack: `Error: deep\n${'    at ü (somewhere)\n'.repeat(1000)}` })
    })
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    const stack = record?.outcome?.by === 'failure' ? (record.outcome.stack ?? '') : ''
    expect(new TextEncoder().encode(stack).length).toBeLessThanOrEqual(4096)
    expect(stack.length).toBeGreaterThan(3000)
  })
})

describe('a turn whose tool failed', () => {
  /** Calls `act` twice: the second call fails. */
  async function scopeWithTool(settings: Parameters<Stub['configure']>[0] = {}) {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure(settings, 'test')
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act', { text: 'first' })
      for (let times = 0; times < 2; times += 1) await deps.call('act', { text: 'throw' }).catch(() => {})
      return { said: 'it was done' }
    })
    return { scope, stub }
  }
  const failed_calls = [{ tool: 'act', error: 'the tool failed', attempts: 2 }]

  test('completes, and its outcome names the failed calls', async () => {
    const { scope, stub } = await scopeWithTool()
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([
      { status: 'completed', outcome: { by: 'turn', result: { said: 'it was done' }, failed_calls } },
    ])
    expect(await entriesOf(stub, 'turn-ended')).toMatchObject([{ status: 'result', failed_calls }])
    const ended = (await entriesOf(stub, 'effect-ended')).find(({ status }) => status === 'failed')
    expect(ended?.stack).toMatch(/the tool failed\n +at /)
  })

  test('is partial: its event and its trace say so, and are found by it, as is the tool', async () => {
    const { scope, stub } = await scopeWithTool()
    const [failed] = await sendAndSettle(stub, note(scope, 'a'))
    const { id, meta } = failed!.event
    const { trace_id } = meta
    expect(failed?.outcome).toMatchObject({ by: 'turn', partial: true })
    behaviours.set(scope, async () => ({ said: 'nothing failed' }))
    const [whole] = await sendAndSettle(stub, note(scope, 'b'))
    expect(whole?.outcome).not.toHaveProperty('partial')

    const key = await keyFor(['viewer'], [scope])
    const itemsOf = async (path: string) => (await call(path, { key })).body.items as Record<string, unknown>[]
    const ids = async (path: string) => (await itemsOf(path)).map((item) => item['id'])
    await until(async () => (await itemsOf(`/v1/events?scope=${scope}&status=completed`)).length === 2, 'D1 has both')
    expect(await itemsOf(`/v1/events?scope=${scope}&partial=true`)).toMatchObject([{ id, status: 'completed', partial: true }])
    expect(await ids(`/v1/events?scope=${scope}&partial=false`)).toEqual([whole?.event.id])
    const own = await itemsOf(`/v1/scopes/${encodeURIComponent(scope)}/events?partial=true`)
    expect(own).toMatchObject([{ event: { id }, outcome: { partial: true, failed_calls } }])
    expect(await itemsOf('/v1/traces?status=partial')).toMatchObject([{ trace_id, status: 'partial' }])
    expect(await itemsOf('/v1/traces?status=partial&agent=nobody&kind=reflex&skill=none')).toEqual([])
    const well = (await itemsOf('/v1/traces?status=ok')).map((item) => item['trace_id'])
    expect(well).toContain(whole?.event.meta.trace_id)
    expect(well).not.toContain(trace_id)
    expect((await call(`/v1/traces/${trace_id}`, { key })).body).toMatchObject({ status: 'partial' })

    const { series } = await until(async () => {
      const { body } = await call('/v1/stats?metric=tool.failed&by=tool&bucket=all', { key })
      return body.series.length > 0 && body
    }, 'the statistics have the tool')
    expect(series).toMatchObject([{ label: 'act', total: 2 }])
    expect((await call('/v1/stats?metric=tool.calls&by=tool&bucket=all', { key })).body.series).toMatchObject([{ label: 'act', total: 3 }])
  })

  test('fails where on_tool_error says so, and what succeeded is not repeated', async () => {
    const { scope, stub } = await scopeWithTool({ on_tool_error: 'fail', retry: { max_attempts: 2, backoff_ms: 600_000 } })
    const [id] = await send(stub, note(scope, 'a'))
    await until(async () => (await stub.event(id!))?.attempts === 1 && (await stub.state()).turn === null, 'the first turn failed')
    await hurry(stub)
    const { records } = await stub.outcomes([id!], 10_000)
    expect(records).toMatchObject([
      { status: 'dead_lettered', attempts: 2, error: expect.stringContaining('the tool act failed, and on_tool_error is fail') },
    ])
    expect(effects.filter((effect) => effect.scope === scope && effect.text === 'first')).toHaveLength(1)
  })

  test('and the same call succeeded later names none', async () => {
    const { scope, stub } = await scopeWithTool({ on_tool_error: 'fail' })
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act', { text: 'busy once' }).catch(() => {})
      return deps.call('act', { text: 'busy once' })
    })
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ status: 'completed', attempts: 1 })
    expect(record?.outcome).not.toHaveProperty('failed_calls')
  })
})

describe('an event without an outcome reports the reason why it waits', () => {
  const waitingOf = async (stub: Stub, id: string) => (await stub.event(id))?.waiting

  test('a turn in flight, and the next one', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async () => (await gate.promise, null))
    const [first] = await send(stub, note(scope, 'a'))
    const { since } = await until(async () => (await stub.state()).turn, 'the turn is in flight')
    const [second] = await send(stub, note(scope, 'b'))
    expect(await waitingOf(stub, first!)).toMatchObject({ reason: 'turn', since, detail: expect.stringContaining('considers') })
    expect(await waitingOf(stub, second!)).toMatchObject({ reason: 'turn', since, detail: expect.stringContaining('next one') })
    gate.resolve()
    const { records } = await stub.outcomes([first!, second!], 10_000)
    expect(records.map(({ waiting }) => waiting)).toEqual([null, null])
  })

  test.each([
    ['hour', expect.any(String)],
    ['total', null],
  ] as const)('a token budget per %s', async (per, renewed) => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => ask(deps, 'hello'))
    await stub.configure({ token_budget: { tokens: 0, per } }, 'test')
    const [id] = await send(stub, note(scope, 'a'))
    const waiting = await until(async () => (await waitingOf(stub, id!))?.reason === 'budget' && waitingOf(stub, id!), 'the event waits')
    expect(waiting).toMatchObject({ since: expect.any(String), until: renewed, detail: expect.stringContaining('token budget of 0') })
  })

  test('the quiet time of a debounce', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: { debounce: { quiet_ms: 60_000, max_ms: 60_000 } } }, 'test')
    const [id] = await send(stub, note(scope, 'a'))
    expect(await waitingOf(stub, id!)).toMatchObject({ reason: 'debounce', until: expect.any(String) })
  })

  test('a consumer that pulls, before and after its claim', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ consumer: 'pull' }, 'test')
    const [id] = await send(stub, note(scope, 'a'))
    expect(await waitingOf(stub, id!)).toMatchObject({ reason: 'pull', until: null })
    await stub.claim({ limit: 1, lease_s: 60 }, 'test')
    expect(await waitingOf(stub, id!)).toMatchObject({ reason: 'pull', until: expect.any(String) })
  })
})
