import type { TraceMarks } from '../contract/event-record.ts'

type Context = { trace_id: string; parent_id: string } & TraceMarks
const MOST_STATE = 512
const MOST_MEMBERS = 32
/** A key, and a value of printable characters without `,` and `=`, whose last one is no space. */
const MEMBER = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/** Parses a W3C `traceparent`. Undefined if it is missing or invalid, which starts a new trace. */
export function traceContextOf(traceparent: string | null | undefined, tracestate?: unknown): Context | undefined {
  const [, version, trace_id, parent_id, flags = '', rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(traceparent?.trim() ?? '') ?? []
  if (!trace_id || !parent_id || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (!/[^0]/.test(trace_id) || !/[^0]/.test(parent_id)) return undefined
  // Only the flag of this version is known in a later one.
  const trace_flags = version === '00' ? flags : isSampledBy(flags) ? '01' : '00'
  return { trace_id, parent_id, trace_flags, ...stateOf(tracestate) }
}

/** The valid members of a state. One that is too long, or has too many members, is dropped. */
function stateOf(tracestate: unknown): TraceMarks {
  if (typeof tracestate !== 'string') return {}
  const given = tracestate.split(',').map((member) => member.trim())
  const members = given.filter((member) => member !== '')
  if (members.length > MOST_MEMBERS) return {}
  const valid = new Map<string, string>()
  for (const member of members) {
    const [, key] = MEMBER.exec(member) ?? []
    if (key !== undefined && !valid.has(key)) valid.set(key, member)
  }
  const state = [...valid.values()].join(',')
  return state === '' || state.length > MOST_STATE ? {} : { tracestate: state }
}

/** True if the caller records the trace. */
const isSampledBy = (trace_flags: string): boolean => (Number.parseInt(trace_flags, 16) & 1) === 1

type Span = { trace_id: string; span_id: string }

/** The header that a request carries to be a child of this span. */
const traceparentOf = ({ trace_id, span_id }: Span, trace_flags = '01'): string => `00-${trace_id}-${span_id}-${trace_flags}`

/** As it is stored: a valid header, or null. */
export function validTraceparent(traceparent: string | null | undefined): string | null {
  const trace = traceContextOf(traceparent)
  return trace ? traceparentOf({ trace_id: trace.trace_id, span_id: trace.parent_id }, trace.trace_flags) : null
}

/** The headers of a request that is a child of this span. */
export const traceHeaders = (span: Span, { trace_flags, tracestate }: TraceMarks): Record<string, string> => ({
  traceparent: traceparentOf(span, trace_flags),
  ...(tracestate !== undefined && { tracestate }),
})

/**
 * Sends the headers of the trace with each request that does not have its own, and reads the marks
 * for such a request alone.
 */
export function tracedFetch(send: typeof fetch, span: Span, marks: () => TraceMarks = () => ({})): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    if (!headers.has('traceparent')) for (const [name, value] of Object.entries(traceHeaders(span, marks()))) headers.set(name, value)
    return send(input, { ...init, headers })
  }
}
