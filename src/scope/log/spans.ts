import { type Event, newSpanId, newTraceId } from '../../core/event.ts'
import { limits } from '../../base/limits.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { TraceContext } from '../../contract/scope-api.ts'

/** Derives an event's span from its id, so it needs no look-up (FNV-1a, 64 bit). */
export function eventSpan(id: string): string {
  let high = 0xcbf29ce4
  let low = 0x84222325
  for (let index = 0; index < id.length; index += 1) {
    low = (low ^ id.charCodeAt(index)) >>> 0
    const product = low * 0x1b3
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 0x1_0000_0000) + (low << 8)) >>> 0
    low = product >>> 0
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
}

export const eventHead = (event: { id: string; trace_id: string }): EntryHead => ({
  trace_id: event.trace_id,
  span_id: eventSpan(event.id),
  parent_id: null,
  event_ids: [event.id],
  duration_ms: null,
})

export const headOf = (event: Event): EntryHead => eventHead({ id: event.id, trace_id: event.meta.trace_id })

/**
 * A turn joins the trace of its newest event, as a child of its span. Large turns list only the
 * last ids.
 */
export function turnHead(events: readonly Event[], span_id: string): EntryHead {
  const newest = events.at(-1)
  return {
    trace_id: newest?.meta.trace_id ?? newTraceId(),
    span_id,
    parent_id: newest ? eventSpan(newest.id) : null,
    event_ids: events.slice(-limits.listed_ids).map(({ id }) => id),
    ...(events.length > limits.listed_ids && { event_count: events.length }),
    duration_ms: null,
  }
}

export const childHead = (parent: EntryHead, duration_ms: number | null = null): EntryHead => ({
  ...parent,
  span_id: newSpanId(),
  parent_id: parent.span_id,
  duration_ms,
})

/** A span in the trace of the causing request, or in a new trace. */
export const scopeHead = (trace: TraceContext = { trace_id: newTraceId(), parent_id: null }): EntryHead => ({
  ...trace,
  span_id: newSpanId(),
  event_ids: [],
  duration_ms: null,
})
