/** Parses a W3C `traceparent`. Undefined if it is missing or invalid, which starts a new trace. */
export function traceContextOf(traceparent: string | null | undefined): { trace_id: string; parent_id: string } | undefined {
  const [, version, trace_id, parent_id, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent?.trim() ?? '') ?? []
  if (!trace_id || !parent_id || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  return /[^0]/.test(trace_id) && /[^0]/.test(parent_id) ? { trace_id, parent_id } : undefined
}

/** The header that a request carries to be a child of this span. Every trace is sampled here. */
export const traceparentOf = ({ trace_id, span_id }: { trace_id: string; span_id: string }): string => `00-${trace_id}-${span_id}-01`

/** As it is stored: a valid header, or null. */
export function validTraceparent(traceparent: string | null | undefined): string | null {
  const trace = traceContextOf(traceparent)
  return trace ? traceparentOf({ trace_id: trace.trace_id, span_id: trace.parent_id }) : null
}

/** Sends `traceparent` with each request that does not have the header. */
export function tracedFetch(send: typeof fetch, span: { trace_id: string; span_id: string }): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    if (!headers.has('traceparent')) headers.set('traceparent', traceparentOf(span))
    return send(input, { ...init, headers })
  }
}
