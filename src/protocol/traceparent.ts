/** The trace id of a W3C `traceparent`. One that is invalid is as good as none, says the standard: the trace starts anew. */
export function traceIdOf(traceparent: string | null | undefined): string | undefined {
  const [, version, trace_id, parent_id, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent?.trim() ?? '') ?? []
  if (!trace_id || !parent_id || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  return /[^0]/.test(trace_id) && /[^0]/.test(parent_id) ? trace_id : undefined
}
