import type { LogEntry } from '../contract/log-entry.ts'
import { spanOf } from '../traces/ids.ts'
import { isPart } from './process-log.ts'
import type { StandaloneRow } from './rows.ts'
import type { Storage } from './storage.ts'

/** A storage that traces are read from, such as the file of a process that runs elsewhere. */
export type TraceSource = Pick<Storage, 'skills'> & { log: Pick<Storage['log'], 'entries'> }

/** Rows read at a time. */
const PAGE = 1000

/** The rows of a trace, or of all. */
export function* rowsOf({ log }: Pick<TraceSource, 'log'>, trace_id?: string): Iterable<StandaloneRow> {
  for (let after = 0; ;) {
    const page = log.entries({ after, limit: PAGE, ...(trace_id !== undefined && { trace_id }) })
    yield* page.filter((row) => !isPart(row))
    const last = page.at(-1)
    if (!last) return
    after = last.seq
  }
}

/** Rows of older versions have no spans, and name a call of a tool otherwise. */
export function entryOf(row: StandaloneRow): LogEntry {
  const { span_id = spanOf(`row:${row.seq}`), parent_id = null, event_ids = [], duration_ms = null, call_id } = row
  const kind = row.kind === 'tool-called' ? { kind: 'effect-ended', effect_id: call_id } : {}
  return { ...row, span_id, parent_id, event_ids, duration_ms, ...kind } as unknown as LogEntry
}

/** The entries of a trace, as a scope's log has them. */
export const entriesOf = (source: Pick<TraceSource, 'log'>, trace_id: string): LogEntry[] =>
  Array.from(rowsOf(source, trace_id)).flatMap((row) => (row.kind === 'turn-asked' ? [] : [entryOf(row)]))
