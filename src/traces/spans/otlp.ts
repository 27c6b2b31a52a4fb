import type { SpanKind } from '../../contract/reports/trace.ts'
import type { EndedSpan, SpanLink } from './span-buffer.ts'

/** The version of the semantic conventions that the names follow; see docs/observability.md. */
const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.44.0'
const SCOPE = { name: 'reflex', version: '0.1.0' }
/** SpanKind and StatusCode of the protocol. */
const INTERNAL = 1
const SERVER = 2
const CLIENT = 3
const PRODUCER = 4
const CONSUMER = 5
const ERROR = 2

const kinds: Partial<Record<SpanKind, number>> = { queue: PRODUCER, event: CONSUMER, call: SERVER, model: CLIENT }

type AnyValue =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: AnyValue[] } }
type Attribute = { key: string; value: AnyValue }

/** A span as JSON of the protocol: ids are hexadecimal, 64-bit integers are strings. */
export function otlpSpan(span: EndedSpan): string {
  const { trace_id, span_id, parent_id, name, kind, status, attributes, links, marks } = span
  const start_us = Date.parse(span.started_at) * 1000
  const end_us = start_us + Math.round((span.duration_ms ?? 0) * 1000)
  const message = attributes['error.message']
  return JSON.stringify({
    traceId: trace_id,
    spanId: span_id,
    ...(parent_id !== null && { parentSpanId: parent_id }),
    ...(marks.tracestate !== undefined && { traceState: marks.tracestate }),
    flags: Number.parseInt(marks.trace_flags ?? '01', 16),
    name,
    kind: 'mcp.method.name' in attributes ? CLIENT : (kinds[kind] ?? INTERNAL),
    startTimeUnixNano: `${start_us}000`,
    endTimeUnixNano: `${end_us}000`,
    attributes: otlpAttributes({ ...attributes, 'reflex.span.kind': kind }),
    ...otlpLinks([...links, ...requestsIn(attributes)]),
    ...(status === 'error' && { status: { code: ERROR, ...(typeof message === 'string' && { message }) } }),
  })
}

const otlpLinks = (links: readonly SpanLink[]) =>
  links.length > 0 && { links: links.map((link) => ({ traceId: link.trace_id, spanId: link.span_id })) }

/** Requests of other traces, such as the decision on an approval, are named by their headers. */
const requestsIn = (attributes: Record<string, unknown>): SpanLink[] =>
  Object.entries(attributes).flatMap(([name, value]) => {
    const [, trace_id, span_id] = name.endsWith('traceparent') && typeof value === 'string' ? value.split('-') : []
    return trace_id !== undefined && span_id !== undefined ? [{ trace_id, span_id }] : []
  })

/** The request's body, of spans that `otlpSpan` wrote. */
export function otlpRequest(spans: readonly string[], resource: Record<string, string>): string {
  const about = JSON.stringify({ attributes: otlpAttributes(resource) })
  const scope = JSON.stringify(SCOPE)
  const url = JSON.stringify(SCHEMA_URL)
  const inScope = `{"scope":${scope},"spans":[${spans.join(',')}],"schemaUrl":${url}}`
  return `{"resourceSpans":[{"resource":${about},"scopeSpans":[${inScope}],"schemaUrl":${url}}]}`
}

const otlpAttributes = (attributes: Record<string, unknown>): Attribute[] =>
  Object.entries(attributes).flatMap(([key, value]) => attribute(key, value))

/** The score of the gate becomes one attribute for each of its numbers. Other objects are JSON. */
function attribute(key: string, value: unknown): Attribute[] {
  if (value === undefined || value === null) return []
  if (key === 'reflex.score' && typeof value === 'object') {
    return Object.entries(value).flatMap(([name, part]) => attribute(`${key}.${name}`, part))
  }
  return [{ key, value: anyValue(value) }]
}

function anyValue(value: unknown): AnyValue {
  if (typeof value === 'string') return { stringValue: value.toWellFormed() }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'number') return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return { arrayValue: { values: value.map(anyValue) } }
  return { stringValue: JSON.stringify(value) }
}
