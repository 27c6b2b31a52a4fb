import { type Event, newSpanId, newTraceId } from '../../core/event.ts'
import type { TraceContext } from '../../contract/scope-api.ts'
import type { TraceMarks } from '../../contract/event-record.ts'
import { limits } from '../../base/limits.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { Database } from '../../kernel/unit.ts'
import { childAt, eventSpan, isSampled, marksOf, spanOf } from '../../traces/ids.ts'

export const eventHead = (event: { scope: string; id: string; trace_id: string }): EntryHead => ({
  trace_id: event.trace_id,
  span_id: eventSpan(event),
  parent_id: null,
  event_ids: [event.id],
  duration_ms: null,
})

/** Later entries of the span, written by `eventHead`, do not repeat its parent. */
export function headOf({ scope, id, meta: { trace_id, parent_id, causation_id } }: Event): EntryHead {
  const cause = causation_id === null ? null : eventSpan({ scope, id: causation_id })
  return { ...eventHead({ scope, id, trace_id }), parent_id: parent_id ?? cause }
}

/** An event that a span of its trace sends names that span. */
export function under<Sent extends Event>({ trace_id, span_id }: EntryHead, event: Sent, marks: TraceMarks): Sent {
  if (event.meta.trace_id !== trace_id || event.meta.parent_id !== undefined) return event
  return { ...event, meta: { ...event.meta, ...marks, parent_id: span_id } }
}

/**
 * A turn joins the trace of its newest event, as a child of its span. Large turns list only the
 * last ids.
 */
export function turnHead(events: readonly Event[], span_id: string): EntryHead {
  const newest = events.at(-1)
  return {
    trace_id: newest?.meta.trace_id ?? newTraceId(),
    span_id,
    parent_id: newest ? eventSpan(newest) : null,
    event_ids: events.slice(-limits.listed_ids).map(({ id }) => id),
    ...(events.length > limits.listed_ids && { event_count: events.length }),
    duration_ms: null,
  }
}

/** The span of a reflex's run on an event, also for the action that follows. */
export const reflexHead = (event: Event, reflex_id: string): EntryHead =>
  childAt(headOf(event), spanOf(`reflex:${event.scope}:${event.id}:${reflex_id}`))

/** A span in the trace of the causing request, or in a new trace. */
export function scopeHead(trace: TraceContext = { trace_id: newTraceId(), parent_id: null }): EntryHead {
  const { trace_id, parent_id } = trace
  const marks = marksOf(trace)
  const head = { trace_id, parent_id, span_id: newSpanId(), event_ids: [], duration_ms: null }
  return Object.keys(marks).length > 0 ? { ...head, marks } : head
}

type TraceMarkRow = TraceMarks & { trace_id: string }

/** Finds what a caller said of its trace, to pass it on with what follows from its request. */
export class TraceMarksOf {
  readonly #database: Database
  readonly #ratio: number

  /** `ratio`: the share of traces that are exported, of those without a caller. */
  constructor(database: Database, ratio: number) {
    this.#database = database
    this.#ratio = ratio
  }

  of({ trace_id, event_ids, marks }: Pick<EntryHead, 'trace_id' | 'event_ids' | 'marks'>): TraceMarks {
    const sql = `SELECT trace_id, payload ->> '$.meta.trace_flags' AS trace_flags, payload ->> '$.meta.tracestate' AS tracestate FROM events WHERE id = ?`
    const row = marks ? null : this.#database.first<TraceMarkRow>(sql, event_ids.at(-1) ?? '')
    const own = marks ?? (row?.trace_id === trace_id ? row : null)
    return {
      trace_flags: own?.trace_flags ?? (isSampled(trace_id, this.#ratio) ? '01' : '00'),
      ...(own?.tracestate && { tracestate: own.tracestate }),
    }
  }
}
