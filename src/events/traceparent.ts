import type { TraceContext } from '../contract/scope-api.ts'

/** Parses a W3C `traceparent`. Undefined if it is missing or invalid, which starts a new trace. */
export function traceContextOf(traceparent: string | null | undefined): TraceContext | undefined {
  const [, version, trace_id, parent_id, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(traceparent?.trim() ?? '') ?? []
  if (!trace_id || !parent_id || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  return /[^0]/.test(trace_id) && /[^0]/.test(parent_id) ? { trace_id, parent_id } : undefined
}

export const traceIdOf = (traceparent: string | null | undefined): string | undefined => traceContextOf(traceparent)?.trace_id
