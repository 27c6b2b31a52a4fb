import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import type { Span } from '../../../src/contract/reports/trace.ts'
import { eventSpan, queueSpan, runSpan, stepSpan } from '../../../src/traces/ids.ts'
import { buildTrace } from '../../../src/traces/spans/tree.ts'
import { assertProperty } from '../../support/property.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
const start = Date.parse('2026-11-21T05:00:00.000Z')

let seq = 0
function logged(ms: number, fields: Record<string, unknown>) {
  seq += 1
  const head = { trace_id: TRACE, parent_id: null, event_ids: ['e'], duration_ms: null }
  const entry = { seq, at: new Date(start + ms).toISOString(), ...head, ...fields }
  return { scope: 'ops', entry: entry as unknown as LogEntry }
}

const event = eventSpan({ scope: 'ops', id: 'e' })
const usage = { input_tokens: 10, output_tokens: 2, cost_usd: 0.5, model_calls: 1 }
const accepted = (ms = 0) =>
  logged(ms, { span_id: event, parent_id: CALLER, kind: 'event-accepted', event_type: 'ws.message', source: 'ws:a', via: 'http' })
const settled = (ms: number) =>
  logged(ms, { span_id: event, kind: 'event-ended', status: 'completed', attempts: 1, outcome: { by: 'turn' }, error: null })
const turn = 'a'.repeat(16)
const turned = (ms: number, more: Record<string, unknown>) => logged(ms, { span_id: turn, parent_id: event, turn_id: 't', ...more })
const started = turned(5, { kind: 'turn-started', agent: 'guard', attempts: 0, considered: [], saw: {} })
const ended = turned(90, { kind: 'turn-ended', duration_ms: 85, status: 'result', result: 1, error: null, acts: [], usage, scratch: null })
const asked = logged(40, {
  span_id: 'b'.repeat(16),
  parent_id: turn,
  duration_ms: 30,
  kind: 'model-called',
  model: 'offline',
  status: 'ok',
  content: [],
  finish_reason: 'stop',
  error: null,
  usage,
})
const run_id = 'r-1'
const step = { run_id, phase: 'step', index: 0 }
const ran = logged(50, { span_id: runSpan(run_id), parent_id: turn, kind: 'skill-started', run_id, skill_id: 's', version: '1.0.0' })
const effect = (kind: string, ms: number, more: Record<string, unknown> = {}) =>
  logged(ms, {
    span_id: 'c'.repeat(16),
    parent_id: stepSpan(run_id, 'step', 0),
    kind,
    effect_id: 'x',
    tool: 'http.send',
    cause: {},
    ...more,
  })

const flat = (span: Span): Span[] => [span, ...span.children.flatMap(flat)]
const path = (span: Span): string => [span.name, ...(span.children.length > 0 ? [path(span.children[0] as Span)] : [])].join(' > ')

describe('a trace', () => {
  test('is one tree from the caller to the effect', () => {
    const entries = [accepted(), started, asked, ran, effect('effect-started', 60, { step }), effect('effect-ended', 70, { status: 'ok' })]
    const stepped = logged(71, {
      span_id: stepSpan(run_id, 'step', 0),
      parent_id: runSpan(run_id),
      kind: 'skill-step-ended',
      step: 'send',
      index: 0,
      status: 'ok',
    })
    const applied = logged(72, { span_id: runSpan(run_id), kind: 'skill-applied', run_id, skill_id: 's', status: 'ok' })
    const trace = buildTrace(TRACE, [...entries, stepped, applied, ended, settled(100)])
    expect(trace).toMatchObject({
      status: 'ok',
      scopes: ['ops'],
      duration_ms: 100,
      ended_at: '2026-11-21T05:00:00.100Z',
      usage,
      truncated: false,
    })
    const root = trace?.root as Span
    expect(root).toMatchObject({ span_id: event, parent_id: CALLER, kind: 'event', name: 'process ops', duration_ms: 100 })
    const [turned_span] = root.children
    expect(turned_span).toMatchObject({ name: 'invoke_agent guard', started_at: '2026-11-21T05:00:00.005Z', duration_ms: 85 })
    expect(turned_span?.children.map(({ name }) => name)).toEqual(['chat offline', 'invoke_workflow s'])
    expect(turned_span?.children[0]).toMatchObject({ started_at: '2026-11-21T05:00:00.010Z', duration_ms: 30 })
    expect(path(turned_span?.children[1] as Span)).toBe('invoke_workflow s > step send > execute_tool http.send')
  })

  test('runs while one of its spans has no end, also one whose step is not logged yet', () => {
    const trace = buildTrace(TRACE, [accepted(), started, ran, effect('effect-started', 60, { step })])
    expect(trace).toMatchObject({ status: 'running', ended_at: null, duration_ms: null })
    expect(path(trace?.root as Span)).toBe('process ops > invoke_agent guard > invoke_workflow s > step 0 > execute_tool http.send')
    expect(flat(trace?.root as Span).map(({ status, duration_ms }) => [status, duration_ms])).toEqual(
      Array.from({ length: 5 }, () => ['running', null]),
    )
  })

  test('has ended where only a person has not decided, whose approval waits', () => {
    const approval = turned(80, { span_id: 'b'.repeat(16), parent_id: turn, kind: 'approval-requested', skill_id: 's', approval_id: 'p' })
    const trace = buildTrace(TRACE, [accepted(), started, approval, ended, settled(100)])
    expect(trace).toMatchObject({ status: 'ok', ended_at: '2026-11-21T05:00:00.100Z', duration_ms: 100 })
    const span = flat(trace?.root as Span).find(({ kind }) => kind === 'approval')
    expect(span).toMatchObject({ status: 'waiting', duration_ms: null })
  })

  test('is partial if its event ended well although a tool failed', () => {
    const outcome = { by: 'turn', turn_id: 't', log_seq: 3, partial: true }
    const done = logged(100, { span_id: event, kind: 'event-ended', status: 'completed', attempts: 1, outcome, error: null })
    expect(buildTrace(TRACE, [accepted(), started, ended, done])).toMatchObject({ status: 'partial', root: { status: 'ok' } })
  })

  test('has failed if its event was dead-lettered', () => {
    const dead = logged(10, { span_id: event, kind: 'event-ended', status: 'dead_lettered', attempts: 3, outcome: {}, error: 'no' })
    expect(buildTrace(TRACE, [accepted(), dead])).toMatchObject({
      status: 'error',
      root: { attributes: { 'error.type': 'dead_lettered' } },
    })
  })

  test('has the span of its caller as the root of several events', () => {
    const other = logged(1, { ...accepted().entry, seq: 99, span_id: eventSpan({ scope: 'ops', id: 'f' }), event_ids: ['f'] })
    const trace = buildTrace(TRACE, [accepted(), settled(5), other])
    expect(trace?.root).toMatchObject({ span_id: CALLER, kind: 'caller', status: 'running' })
    expect(trace?.root.children).toHaveLength(2)
  })

  test('has the turn of another trace that considered its event', () => {
    const foreign = { trace_id: 'f'.repeat(32), parent_id: eventSpan({ scope: 'ops', id: 'newest' }), event_ids: ['e', 'newest'] }
    const other = logged(5, { span_id: turn, ...foreign, kind: 'turn-started', turn_id: 't', agent: 'guard', attempts: 0 })
    expect(path(buildTrace(TRACE, [accepted(), other])?.root as Span)).toBe('process ops > invoke_agent guard')
  })

  test('has a span for the way of an event through the queue, and its time, if its id has the time', () => {
    const id = '019a9a00-0000-7000-8000-000000000000'
    const at = new Date(0x019a9a000000 + 250).toISOString()
    const treeOf = (via: string, event_id: string) => {
      const event = { event_type: 'test.note', source: 'x', via, event_ids: [event_id] }
      return buildTrace(TRACE, [logged(0, { span_id: 'x', parent_id: CALLER, kind: 'event-accepted', at, ...event })])?.root as Span
    }
    const attributesOf = (via: string, event_id: string) => flat(treeOf(via, event_id)).at(-1)?.attributes
    const span_id = queueSpan({ scope: 'ops', id })
    const queue = { span_id, parent_id: CALLER, kind: 'queue', name: 'send ops', status: 'ok', duration_ms: 250 }
    const event = { span_id: 'x', parent_id: span_id, kind: 'event' }
    expect(flat(treeOf('queue', id))).toMatchObject([queue, event])
    expect(flat(treeOf('http', id))).toMatchObject([{ ...event, parent_id: CALLER }])
    expect(attributesOf('queue', id)).toMatchObject({ 'reflex.event.queued_ms': 250 })
    expect(attributesOf('queue', 'mine')).not.toHaveProperty(['reflex.event.queued_ms'])
    expect(attributesOf('http', id)).not.toHaveProperty(['reflex.event.queued_ms'])
  })

  test('keeps apart the events of two scopes that have the same id', () => {
    const [one, other] = ['ops', 'chat'].map((scope) => {
      const span_id = eventSpan({ scope, id: 'e' })
      return [accepted(), settled(5)].map(({ entry }) => ({ scope, entry: { ...entry, span_id } }))
    }) as [ReturnType<typeof accepted>[], ReturnType<typeof accepted>[]]
    const trace = buildTrace(TRACE, [...one, ...other])
    expect(trace?.root.children.map(({ name, attributes }) => [name, attributes['reflex.scope']])).toEqual([
      ['process ops', 'ops'],
      ['process chat', 'chat'],
    ])
  })

  test('leaves long values to the log', () => {
    const long = effect('effect-started', 1, { input: 'x'.repeat(5000) })
    expect(buildTrace(TRACE, [long])?.root.attributes['gen_ai.tool.call.arguments']).toEqual({ not_shown: 5002 })
  })

  test('without entries does not exist', () => {
    expect(buildTrace(TRACE, [])).toBeNull()
  })

  const id = fc.constantFrom('1', '2', '3', '4', '5', '6', '7', '8')
  const kind = fc.constantFrom('event-accepted', 'turn-started', 'effect-started', 'skill-step-ended', 'unknown-kind', 'call-received')
  const hostile = fc.array(fc.record({ span_id: id, parent_id: fc.option(id), kind, ms: fc.integer({ min: -5, max: 50 }) }), {
    minLength: 1,
  })

  test('has every span once, whatever parents the entries name', () => {
    assertProperty(
      'traces/tree',
      fc.property(hostile, (entries) => {
        const trace = buildTrace(
          TRACE,
          entries.map(({ ms, ...fields }) => logged(ms, fields)),
        )
        const found = flat(trace?.root as Span).filter((span) => span.kind !== 'caller')
        expect(found.map(({ span_id }) => span_id).toSorted()).toEqual([...new Set(entries.map(({ span_id }) => span_id))].toSorted())
      }),
    )
  })

  test('is shallow enough for JSON, however long the chain of its spans', () => {
    const chain = Array.from({ length: 5000 }, (_, index) =>
      logged(index, { span_id: `s${index}`, parent_id: `s${index - 1}`, kind: 'turn-started' }),
    )
    const trace = buildTrace(TRACE, chain.toReversed())
    expect(flat(trace?.root as Span)).toHaveLength(5000)
    expect(JSON.stringify(trace).length).toBeGreaterThan(5000)
  })
})
