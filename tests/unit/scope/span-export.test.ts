import { describe, expect, test, vi } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { newSpanId, newTraceId } from '../../../src/core/event.ts'
import type { Log } from '../../../src/engine/log/log.ts'
import { SpanExport } from '../../../src/tools/span-export.ts'
import type { Database } from '../../../src/kernel/unit.ts'
import type { Alarm } from '../../../src/kernel/alarm.ts'
import { otlpTargetOf, type OtlpVariables } from '../../../src/traces/otlp-target.ts'
import { eventSpan } from '../../../src/traces/ids.ts'
import { attributesOf, spansIn, type OtlpSpan } from '../../support/otlp/schema.ts'
import { part } from '../agents/agent-fixtures.ts'

vi.spyOn(console, 'warn').mockImplementation(() => {})

const START = Date.parse('2026-11-21T05:00:00.000Z')
const UNSAMPLED = '0'.repeat(31) + '1'
type Answer = () => Response | Promise<Response>
const ok: Answer = () => Response.json({})

/** A scope's log and clock, and a collector that answers as a test says. */
function scopeWith(variables: OtlpVariables = {}) {
  const clock = { now: START }
  const stored = new Map<string, string>()
  const entries: { seq: number; text: string }[] = []
  const received: OtlpSpan[][] = []
  const world = { answer: ok, requests: 0, floor: 0 }
  const target = otlpTargetOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector.example', ...variables })!
  const log = part<Log>({
    get last() {
      return entries.length
    },
    read: (after: number, limit: number, before?: number) =>
      entries.filter(({ seq }) => seq > Math.max(after, world.floor) && seq < (before ?? Number.POSITIVE_INFINITY)).slice(0, limit),
  })
  const database = part<Database>({
    read: <Value>(key: string, otherwise: Value) => (stored.has(key) ? (JSON.parse(stored.get(key) as string) as Value) : otherwise),
    write: (key: string, value: unknown) => void stored.set(key, JSON.stringify(value)),
    first: () => undefined,
  })
  const send = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    world.requests += 1
    const response = await Promise.race([world.answer(), rejection(init?.signal)])
    if (response.ok) received.push(spansIn(init?.body as string))
    return response
  }
  let work: Promise<unknown> = Promise.resolve()
  const alarm = part<Alarm>({ cover: async (covered: Promise<unknown>) => void (work = covered), rearm: () => {} })
  /** A process: it has the log and the state that are on disk. */
  const boot = () => new SpanExport({ target, scope: 'ops', database, log, alarm, fetch: send, now: () => clock.now })
  const one = {
    spans: boot(),
    clock,
    world,
    received,
    sent: () => received.flat().map(({ spanId }) => spanId),
    restart: () => void (one.spans = boot()),
    append(...fields: Record<string, unknown>[]) {
      for (const entry of fields) {
        const seq = entries.length + 1
        const head = { parent_id: null, event_ids: [], duration_ms: null }
        entries.push({ seq, text: JSON.stringify({ seq, at: new Date(clock.now).toISOString(), ...head, ...entry }) })
      }
      one.spans.follow()
    },
    /** Lets what is due happen. */
    async flush() {
      one.spans.start()
      await work
    },
    async after(ms: number) {
      clock.now += ms
      await one.flush()
    },
  }
  return one
}

const rejection = (signal: AbortSignal | null | undefined) =>
  new Promise<never>((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('aborted')))
  })
const never = () => new Promise<never>(() => {})

let events = 0
/** The entries of an event, and its span. */
function event(status = 'completed', trace_id = newTraceId()) {
  events += 1
  const id = `e-${events}`
  const head = { trace_id, span_id: eventSpan({ scope: 'ops', id }), event_ids: [id] }
  const begin = { ...head, kind: 'event-accepted', event_type: 'note', source: 'test', via: 'http' }
  const end = {
    ...head,
    kind: 'event-ended',
    status,
    attempts: 1,
    outcome: { by: 'turn' } satisfies Partial<LogEntry> & object,
    error: null,
  }
  return { span_id: head.span_id, begin, end, all: [begin, end] }
}

describe('the export of spans', () => {
  test('sends the spans that have ended, gathered for a moment', async () => {
    const scope = scopeWith()
    const [one, other, open] = [event(), event(), event()]
    scope.append(...one.all, ...other.all, open.begin)
    expect(scope.spans.due()).toBe(START + 800)
    await scope.after(800)
    expect(scope.received).toHaveLength(1)
    expect(scope.sent()).toEqual([one.span_id, other.span_id])
    scope.append(open.end)
    await scope.after(800)
    expect(scope.sent()).toEqual([one.span_id, other.span_id, open.span_id])
    expect(scope.spans.state).toEqual({ waiting: 0, exported: 3, dropped: 0, last_error: null })
  })

  test('sends each span once across a restart, and then those that had not ended', async () => {
    const scope = scopeWith()
    const [one, open, later] = [event(), event(), event()]
    scope.append(one.begin, open.begin, one.end)
    await scope.after(800)
    scope.restart()
    scope.append(...later.all, open.end)
    await scope.after(800)
    expect(scope.sent()).toEqual([one.span_id, later.span_id, open.span_id])
    expect(attributesOf(scope.received.flat().at(-1)!)).toMatchObject({ 'reflex.event.type': 'note', 'reflex.event.status': 'completed' })
  })

  test('sends what waited when the process died', async () => {
    const scope = scopeWith()
    const one = event()
    scope.world.answer = () => Promise.reject(new Error('connection refused'))
    scope.append(...one.all)
    await scope.after(800)
    expect(scope.spans.state).toMatchObject({ waiting: 2, last_error: 'connection refused' })
    scope.world.answer = ok
    scope.restart()
    await scope.flush()
    expect(scope.sent()).toEqual([one.span_id])
  })

  test.each<[string, Answer, OtlpVariables]>([
    ['hangs', never, { OTEL_EXPORTER_OTLP_TIMEOUT: '20' }],
    ['hangs within its answer', () => new Response(new ReadableStream()), { OTEL_EXPORTER_OTLP_TIMEOUT: '20' }],
    ['refuses the connection', () => Promise.reject(new TypeError('fetch failed')), {}],
    ['answers 503', () => new Response('busy', { status: 503 }), {}],
  ])('tries again with longer pauses while the collector %s', async (_how, answer, variables) => {
    const scope = scopeWith(variables)
    const one = event()
    scope.world.answer = answer
    scope.append(...one.all)
    await scope.after(800)
    for (const pause_ms of [1000, 2000, 4000]) {
      expect(scope.spans.due()).toBe(scope.clock.now + pause_ms)
      await scope.after(pause_ms - 1)
      const { requests } = scope.world
      await scope.after(1)
      expect(scope.world.requests).toBe(requests + 1)
    }
    scope.world.answer = ok
    await scope.after(8000)
    expect(scope.received.at(-1)!.map(({ spanId }) => spanId)).toEqual([one.span_id])
    expect(scope.spans.state).toEqual({ waiting: 0, exported: 1, dropped: 0, last_error: null })
  })

  test.each([429, 503])('waits as long as an answer of %i asks for', async (status) => {
    const scope = scopeWith()
    scope.world.answer = () => new Response(null, { status, headers: { 'Retry-After': '30' } })
    scope.append(...event().all)
    await scope.after(800)
    expect(scope.spans.due()).toBe(scope.clock.now + 30_000)
  })

  test.each([400, 401, 500])('drops and counts the spans of a request that the collector answers by %i', async (status) => {
    const scope = scopeWith()
    scope.world.answer = () => new Response('no', { status })
    scope.append(...event().all, ...event().all)
    await scope.after(800)
    expect(scope.spans.state).toEqual({ waiting: 0, exported: 0, dropped: 2, last_error: `the collector answered ${status}: no` })
  })

  test('counts the spans that an answer rejects', async () => {
    const scope = scopeWith()
    scope.world.answer = () => Response.json({ partialSuccess: { rejectedSpans: '1', errorMessage: 'too old' } })
    scope.append(...event().all, ...event().all, ...event().all)
    await scope.after(800)
    expect(scope.spans.state).toMatchObject({ exported: 2, dropped: 1, last_error: 'the collector rejected 1 spans: too old' })
  })

  test('drops the oldest spans if the collector is away for more than an hour', async () => {
    const scope = scopeWith()
    const [old, young] = [event(), event()]
    scope.world.answer = () => Promise.reject(new Error('away'))
    scope.append(...old.all)
    await scope.after(800)
    await scope.after(3_500_000)
    expect(scope.spans.state).toMatchObject({ waiting: 2, dropped: 0 })
    scope.append(...young.all)
    await scope.after(300_000)
    expect(scope.spans.state).toMatchObject({ waiting: 2, dropped: 1 })
    scope.world.answer = ok
    await scope.after(300_000)
    expect(scope.sent()).toEqual([young.span_id])
  })

  test('drops the oldest spans if more than 20,000 log entries wait', async () => {
    const scope = scopeWith()
    scope.world.answer = () => Promise.reject(new Error('away'))
    scope.append(...Array.from({ length: 10_400 }, () => event().all).flat())
    await scope.after(800)
    expect(scope.spans.state).toMatchObject({ waiting: 20_300, dropped: 250 })
    scope.world.answer = ok
    await scope.after(1000)
    expect(scope.spans.state).toMatchObject({ waiting: 0, exported: 10_150, dropped: 250 })
  })

  test('counts the entries that retention has deleted meanwhile', async () => {
    const scope = scopeWith()
    const one = event()
    scope.append(...event().all, ...one.all)
    scope.world.floor = 2
    await scope.after(800)
    expect(scope.sent()).toEqual([one.span_id])
    expect(scope.spans.state).toMatchObject({ waiting: 0, exported: 1, dropped: 2 })
  })

  test('sends what has ended of a trace that stays open, and the rest at its end', async () => {
    const scope = scopeWith()
    const one = event()
    const reply = { trace_id: one.begin.trace_id, span_id: newSpanId(), parent_id: one.span_id, kind: 'reply-sent', content: 'hello' }
    scope.append(one.begin, reply)
    await scope.after(800)
    expect(scope.sent()).toEqual([])
    expect(scope.spans.due()).toBe(START + 600_000)
    await scope.after(600_000)
    expect(scope.sent()).toEqual([reply.span_id])
    expect(scope.spans.due()).toBeNull()
    scope.append(one.end)
    await scope.after(800)
    expect(scope.sent()).toEqual([reply.span_id, one.span_id])
  })

  test('sends all spans of the part of a trace that has an error, even if the trace is not sampled', async () => {
    const scope = scopeWith({ OTEL_TRACES_SAMPLER_ARG: '0.5' })
    const [quiet, failed] = [event('completed', UNSAMPLED), event('dead_lettered', UNSAMPLED)]
    const sampled = event('completed', 'f'.repeat(32))
    scope.append(...quiet.all)
    await scope.after(800)
    scope.append(...failed.all, ...sampled.all)
    await scope.after(800)
    expect(scope.sent()).toEqual([failed.span_id, sampled.span_id])
    expect(scope.spans.state).toMatchObject({ waiting: 0, exported: 2, dropped: 0 })
  })

  test('follows the decision of the caller, and passes the state of its trace on', async () => {
    const scope = scopeWith({ OTEL_TRACES_SAMPLER_ARG: '0.5' })
    const [wanted, unwanted] = [event('completed', UNSAMPLED), event('completed', 'f'.repeat(32))]
    scope.append({ ...wanted.begin, trace_flags: '01', tracestate: 'vendor=1' }, wanted.end)
    scope.append({ ...unwanted.begin, trace_flags: '00' }, unwanted.end)
    await scope.after(800)
    expect(scope.received.flat()).toMatchObject([{ spanId: wanted.span_id, flags: 1, traceState: 'vendor=1' }])
  })

  test('links a turn to the events of other traces that it considered', async () => {
    const scope = scopeWith()
    const [one, other] = [event(), event()]
    const { trace_id } = other.begin
    const event_ids = [...one.begin.event_ids, ...other.begin.event_ids]
    const turn = { trace_id, span_id: newSpanId(), parent_id: other.span_id, event_ids, turn_id: 't' }
    const usage = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }
    const ended = { ...turn, kind: 'turn-ended', duration_ms: 5, status: 'result', result: 1, error: null, acts: [], usage }
    scope.append(one.begin, other.begin, { ...turn, kind: 'turn-started', agent: 'a', attempts: 0, considered: [], saw: {} }, ended)
    scope.append(one.end, other.end)
    await scope.after(800)
    const found = scope.received.flat().find(({ spanId }) => spanId === turn.span_id)
    expect(found?.links).toEqual([{ traceId: one.begin.trace_id, spanId: one.span_id }])
  })

  test('links an event to the request that retried it, and sends it again', async () => {
    const scope = scopeWith()
    const one = event('dead_lettered')
    scope.append(...one.all)
    await scope.after(800)
    const request = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
    const traceparent = `00-${request.traceId}-${request.spanId}-01`
    scope.append({ ...one.begin, kind: 'event-reopened', by: 'ops', traceparent }, { ...one.end, status: 'completed' })
    await scope.after(800)
    const [first, second] = scope.received.flat()
    expect(first?.status).toMatchObject({ code: 2 })
    expect(second).toMatchObject({ spanId: one.span_id, name: 'process ops', links: [request] })
    expect(second?.status).toBeUndefined()
  })

  test('never sends a header or a body to where a collector redirects', async () => {
    const scope = scopeWith()
    scope.world.answer = () => new Response(null, { status: 302, headers: { Location: 'https://elsewhere.example' } })
    scope.append(...event().all)
    await scope.after(800)
    expect(scope.spans.state).toMatchObject({ dropped: 1, last_error: 'the collector answered 302: ' })
  })
})
