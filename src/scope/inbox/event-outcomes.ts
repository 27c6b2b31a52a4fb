import type { EventRecord, FailedCall, Outcome, EventOutcome } from '../../contract/event-record.ts'
import { byteLength } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import type { LogEntry } from '../../contract/log-entry.ts'
import type { Database } from '../storage/database.ts'
import type { InboxView, OpenEvent } from './view.ts'
import type { Log } from '../log/log.ts'
import { situationOf, waitingOf, type SituationParts } from './waiting.ts'

/** Length of errors and reasons once the answer is full. */
const SHORT = 500

type Parts = SituationParts & { database: Database; log: Log; view: InboxView }
type Row = OpenEvent & Pick<EventOutcome, 'id' | 'trace_id' | 'status'> & { outcome: string | null; ended_at: number | null }
type EntryAt = (seq: number) => LogEntry | null

/** Joins ended events with the decisions in the log, which are not stored with each event. */
export class EventOutcomes {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  record(id: string): EventRecord | null {
    const { view, log } = this.#parts
    const row = view.record(id)
    if (!row) return null
    const { open, ...record } = row
    const outcome = withDecision(record.outcome, (seq) => log.entry(seq))
    return { ...record, outcome, waiting: open && waitingOf(open, situationOf(this.#parts)) }
  }

  /** Returns the known events of `ids`. Past the page's byte limit, outcomes are shortened. */
  of(ids: readonly string[]): EventOutcome[] {
    const entryAt = this.#remembering()
    const situation = situationOf(this.#parts)
    let left: number = limits.page_bytes
    const found = new Map<string, EventOutcome>()
    for (const row of this.#rows(ids)) {
      const { id, trace_id, status, attempts, error } = row
      const waiting = row.ended_at === null ? waitingOf(row, situation) : null
      const outcome = row.outcome === null ? null : (JSON.parse(row.outcome) as Outcome)
      const record = { id, trace_id, status, attempts, error, outcome, waiting }
      const whole = left > 0 ? { ...record, outcome: withDecision(record.outcome, entryAt) } : record
      const bytes = byteLength(JSON.stringify(whole))
      found.set(row.id, bytes <= left ? whole : inShort(record))
      left -= bytes
    }
    return ids.flatMap((id) => found.get(id) ?? [])
  }

  #rows(ids: readonly string[]): Iterable<Row> {
    return this.#parts.database.each<Row>(
      `SELECT id, trace_id, status, attempts, error, outcome, ended_at, coalesce(ack_token, '') AS token, due_at, lease_until,
          parked, parked_at, accepted_at FROM events
        WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq`,
      JSON.stringify(ids),
    )
  }

  /** Caches the last entry read, since one turn decides on many events. */
  #remembering(): EntryAt {
    let known: { seq: number; entry: LogEntry | null } | undefined
    return (seq) => (known = known?.seq === seq ? known : { seq, entry: this.#parts.log.entry(seq) }).entry
  }
}

function withDecision(outcome: Outcome | null, entryAt: EntryAt): Outcome | null {
  const entry = outcome && 'log_seq' in outcome && outcome.log_seq !== undefined ? entryAt(outcome.log_seq) : null
  if (outcome?.by === 'turn') return { ...outcome, ...(entry?.kind === 'turn-ended' ? decisionOf(entry) : { result: null }) }
  if (outcome?.by === 'reflex') return { ...outcome, ...(entry?.kind === 'reflex-fired' && { action: entry.action }) }
  if (outcome?.by !== 'failure' || !entry || !('stack' in entry) || typeof entry.stack !== 'string') return outcome
  return { ...outcome, stack: entry.stack }
}

const decisionOf = ({ result, failed_calls }: { result: unknown; failed_calls?: FailedCall[] }) => ({
  result,
  ...(failed_calls && { failed_calls }),
})

function inShort({ error, outcome, waiting, ...record }: EventOutcome): EventOutcome {
  const cut = <Text extends string | null>(text: Text) => (text === null ? text : text.slice(0, SHORT))
  const reason = outcome && 'reason' in outcome ? { reason: cut(outcome.reason) } : {}
  const waits = waiting && { ...waiting, detail: cut(waiting.detail) }
  return { ...record, error: cut(error), outcome: outcome && { ...outcome, ...reason }, waiting: waits, shortened: true }
}
