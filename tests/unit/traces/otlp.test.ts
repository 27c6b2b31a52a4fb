import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import type { Span } from '../../../src/contract/reports/trace.ts'
import { otlpRequest, otlpSpan } from '../../../src/traces/spans/otlp.ts'
import { isSampled } from '../../../src/traces/ids.ts'
import { otlpTargetOf, type OtlpVariables } from '../../../src/traces/otlp-target.ts'
import { SpanBuffer } from '../../../src/traces/spans/span-buffer.ts'
import { buildTrace } from '../../../src/traces/spans/tree.ts'
import { newTraceId } from '../../../src/core/event.ts'
import { attributesOf, parseRequest, spansIn, type OtlpSpan } from '../../support/otlp/schema.ts'

type Recorded = { trace_id: string; scope: string; entries: LogEntry[] }
const golden = readdirSync('tests/golden')
  .filter((name) => name.endsWith('.trace.json'))
  .map((name) => [name, JSON.parse(readFileSync(`tests/golden/${name}`, 'utf8')) as Recorded] as const)

const LATER = Date.parse('2100-01-01')
function exported({ scope, entries }: Recorded, at_a_time = entries.length): OtlpSpan[] {
  const buffer = new SpanBuffer()
  const spans: string[] = []
  for (let from = 0; from < entries.length; from += at_a_time) {
    for (const entry of entries.slice(from, from + at_a_time)) buffer.add({ scope, entry }, 100)
    spans.push(...buffer.take(0).parts.flat().map(otlpSpan))
  }
  spans.push(...buffer.take(LATER).parts.flat().map(otlpSpan))
  return spansIn(otlpRequest(spans, { 'service.name': 'reflex' }))
}

const flat = (span: Span): Span[] => [span, ...span.children.flatMap(flat)]
const about = (span: Span) => ({
  id: span.span_id,
  parent: span.parent_id ?? undefined,
  name: span.name,
  start: `${Date.parse(span.started_at)}000000`,
  ms: span.duration_ms,
  failed: span.status === 'error',
  kind: span.kind,
})
const aboutSent = (span: OtlpSpan) => ({
  id: span.spanId,
  parent: span.parentSpanId,
  name: span.name,
  start: span.startTimeUnixNano,
  ms: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
  failed: span.status?.code === 2,
  kind: attributesOf(span)['reflex.span.kind'],
})
const byId = (one: { id: string }, other: { id: string }): number => one.id.localeCompare(other.id)

describe('spans as OTLP', () => {
  test.each(golden)('of %s are valid, and those of the API', (_name, recorded) => {
    const trace = buildTrace(
      recorded.trace_id,
      recorded.entries.filter(({ trace_id }) => trace_id === recorded.trace_id).map((entry) => ({ scope: recorded.scope, entry })),
    )
    const shown = flat(trace?.root as Span).filter(({ kind, duration_ms }) => kind !== 'caller' && duration_ms !== null)
    expect(exported(recorded).map(aboutSent).toSorted(byId)).toEqual(shown.map(about).toSorted(byId))
  })

  test.each(golden)('of %s are the same spans if the log is read entry by entry', (_name, recorded) => {
    // A gate that decides a second time has its span sent a second time.
    const ids = (spans: OtlpSpan[]) => [...new Set(spans.map(({ spanId }) => spanId))].toSorted()
    expect(ids(exported(recorded, 1))).toEqual(ids(exported(recorded)))
  })

  test('have the numbers of a score as attributes of their own, and other objects as JSON', () => {
    const sent = golden.flatMap(([, recorded]) => exported(recorded)).map(attributesOf)
    const scored = sent.find((attributes) => 'reflex.score.tau' in attributes)
    expect(scored).toMatchObject({ 'reflex.score.score': expect.any(Number), 'reflex.score.components': expect.stringMatching(/^\[/) })
    expect(sent.map((attributes) => attributes['reflex.to_pass']).find(Array.isArray)).toBeDefined()
  })

  test('are children of the span of the caller', () => {
    const [, recorded] = golden[0] as (typeof golden)[0]
    const [first] = recorded.entries as [LogEntry]
    const parent_id = '00f067aa0ba902b7'
    const entries = [{ ...first, parent_id }, ...recorded.entries.slice(1)]
    expect(exported({ ...recorded, entries }).find(({ spanId }) => spanId === first.span_id)?.parentSpanId).toBe(parent_id)
  })
})

describe('the collector', () => {
  const target = (variables: OtlpVariables) => otlpTargetOf(variables)
  const at = 'https://collector.example/otlp/'

  test('is at the endpoint and /v1/traces, or at the endpoint for traces', () => {
    expect(target({})).toBeNull()
    expect(target({ OTEL_EXPORTER_OTLP_ENDPOINT: at })?.url).toBe('https://collector.example/otlp/v1/traces')
    const own = 'https://collector.example/spans?x=1'
    expect(target({ OTEL_EXPORTER_OTLP_ENDPOINT: at, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own })?.url).toBe(own)
    expect(target({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' })).toBeNull()
  })

  test('gets headers that are percent-encoded, as the values of resource attributes are', () => {
    const found = target({
      OTEL_EXPORTER_OTLP_ENDPOINT: at,
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20abc=, x-team = blue ,',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=pre%2Cproduction,service.name=other',
      OTEL_SERVICE_NAME: 'ours',
      CF_VERSION_METADATA: { id: 'v7' },
    })
    expect(Object.fromEntries(found?.headers ?? [])).toEqual({
      authorization: 'Basic abc=',
      'x-team': 'blue',
      'content-type': 'application/json',
    })
    const body = otlpRequest([], found?.resource ?? {})
    expect(attributesOf(parseRequest(body).resourceSpans[0]!.resource)).toEqual({
      'service.name': 'ours',
      'service.version': 'v7',
      'cloud.provider': 'cloudflare',
      'cloud.platform': 'cloudflare.workers',
      'deployment.environment.name': 'pre,production',
    })
  })

  test('gets the share of traces that the sampler names, the same in every scope', () => {
    const traces = Array.from({ length: 2000 }, newTraceId)
    const share = (ratio: number) => traces.filter((trace_id) => isSampled(trace_id, ratio))
    expect(share(0)).toEqual([])
    expect(share(1)).toHaveLength(2000)
    expect(share(0.25).length / 2000).toBeCloseTo(0.25, 1)
    expect(share(0.5)).toEqual(expect.arrayContaining(share(0.25)))
    expect(target({ OTEL_EXPORTER_OTLP_ENDPOINT: at, OTEL_TRACES_SAMPLER_ARG: '0.25' })?.ratio).toBe(0.25)
    expect(target({ OTEL_EXPORTER_OTLP_ENDPOINT: at, OTEL_TRACES_SAMPLER_ARG: 'all' })?.ratio).toBe(1)
  })
})
