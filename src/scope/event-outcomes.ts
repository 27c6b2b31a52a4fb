import type { EventRecord, Outcome } from '../protocol/event-record.ts'
import { byteLength } from '../protocol/byte-length.ts'
import { limits } from '../protocol/limits.ts'
import type { LogEntry } from '../protocol/log-entry.ts'
import type { EventOutcome } from '../protocol/scope-api.ts'
import type { Database } from './database.ts'
import type { InboxView } from './inbox-view.ts'
import type { Log } from './log.ts'

/** Of an error or a reason, in an answer that is full. */
const SHORT = 500

type Parts = { database: Database; log: Log; view: InboxView }
type Row = Pick<EventOutcome, 'id' | 'trace_id' | 'status' | 'attempts' | 'error'> & {
  outcome: string | null
}
type EntryAt = (seq: number) => LogEntry | null

/** Events as they ended, with what was decided: that stands once in the log, not in each event. */
export class EventOutcomes {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  record(id: string): EventRecord | null {
    const { view, log } = this.#parts
    const record = view.record(id)
    return record && { ...record, outcome: withDecision(record.outcome, (seq) => log.entry(seq)) }
  }

  /** Those of these ids that are known. What is beyond a page's bytes has its outcome in short. */
  of(ids: readonly string[]): EventOutcome[] {
    const entryAt = this.#remembering()
    let left: number = limits.page_bytes
    const found = new Map<string, EventOutcome>()
    for (const row of this.#rows(ids)) {
      const record = { ...row, outcome: row.outcome === null ? null : (JSON.parse(row.outcome) as Outcome) }
      const whole = left > 0 ? { ...record, outcome: withDecision(record.outcome, entryAt) } : record
      const bytes = byteLength(JSON.stringify(whole))
      found.set(row.id, bytes <= left ? whole : inShort(record))
      left -= bytes
    }
    return ids.flatMap((id) => found.get(id) ?? [])
  }

  #rows(ids: readonly string[]): Iterable<Row> {
    return this.#parts.database.each<Row>(
      `SELECT id, trace_id, status, attempts, error, outcome FROM events
        WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq`,
      JSON.stringify(ids),
    )
  }

  /** One turn decides on many events: its entry is read once. */
  #remembering(): EntryAt {
    let known: { seq: number; entry: LogEntry | null } | undefined
    return (seq) => (known = known?.seq === seq ? known : { seq, entry: this.#parts.log.entry(seq) }).entry
  }
}

function withDecision(outcome: Outcome | null, entryAt: EntryAt): Outcome | null {
  if (outcome?.by !== 'turn' && outcome?.by !== 'reflex') return outcome
  const entry = entryAt(outcome.log_seq)
  if (outcome.by === 'turn') return { ...outcome, result: entry?.kind === 'turn-ended' ? entry.result : null }
  return { ...outcome, ...(entry?.kind === 'reflex-fired' && { action: entry.action }) }
}

function inShort({ error, outcome, ...record }: EventOutcome): EventOutcome {
  const cut = <Text extends string | null>(text: Text) => (text === null ? text : text.slice(0, SHORT))
  const reason = outcome && 'reason' in outcome ? { reason: cut(outcome.reason) } : {}
  return { ...record, error: cut(error), outcome: outcome && { ...outcome, ...reason }, shortened: true }
}
