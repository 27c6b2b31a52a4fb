import type { TraceMarks } from '../../contract/event-record.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import { isSampled } from '../../traces/otlp-target.ts'
import type { Database } from '../storage/unit.ts'

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
