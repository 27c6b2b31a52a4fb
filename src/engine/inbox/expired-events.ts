import { isoDay } from '../../base/time.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { type Inbox, UNTIL_SETTLED } from './inbox.ts'

/** `kept`: ids of events that D1 does not have. `floor`: events below it have left the context. */
type Expiry = { before: number; kept: readonly string[]; floor: number }
export type EventRow = {
  seq: number
  id: string
  type: string
  source: string
  timestamp: string
  trace_id: string
  payload: string
  status: string
  attempts: number
  error: string | null
  outcome: string | null
  accepted_at: number
  ended_at: number
}
type OldEvents = { day: string; rows: EventRow[] }

const DAY_MS = 86_400_000
const COLUMNS = 'seq, id, type, source, timestamp, trace_id, payload, status, attempts, error, outcome, accepted_at, ended_at'
/** Events accepted before ?1 that have ended and left the context, except those with the ids ?2. */
const EXPIRED = `seq < coalesce((SELECT seq FROM events WHERE accepted_at >= ?1 ORDER BY seq LIMIT 1), ${UNTIL_SETTLED})
  AND ended_at IS NOT NULL AND (in_context = 0 OR seq < ?3) AND id NOT IN (SELECT value FROM json_each(?2))`

/** The events that retention deletes. */
export class ExpiredEvents {
  readonly #database: Database
  readonly #inbox: Inbox

  constructor({ database, inbox }: { database: Database; inbox: Inbox }) {
    this.#database = database
    this.#inbox = inbox
  }

  /**
   * The oldest expired events of one day, of `day` if it is given, up to `limit` and `bytes`. Null
   * if there are none.
   */
  oldest({ before, kept, floor }: Expiry, { day, limit, bytes }: { day: string | null; limit: number; bytes: number }): OldEvents | null {
    const from = day === null ? null : Date.parse(day)
    const sql = `SELECT ${COLUMNS} FROM events WHERE ${EXPIRED} AND (?4 IS NULL OR accepted_at >= ?4 AND accepted_at < ?5) ORDER BY seq LIMIT ?6`
    const rows: EventRow[] = []
    let size = 0
    for (const row of this.#database.each<EventRow>(sql, before, JSON.stringify(kept), floor, from, (from ?? 0) + DAY_MS, limit)) {
      if (size >= bytes || (rows[0] && isoDay(row.accepted_at) !== isoDay(rows[0].accepted_at))) break
      size += row.payload.length + (row.outcome?.length ?? 0)
      rows.push(row)
    }
    return rows[0] ? { day: isoDay(rows[0].accepted_at), rows } : null
  }

  /** Deletes these events. False if one has changed since it was read: then none is deleted. */
  remove(unit: Unit, rows: readonly EventRow[]): boolean {
    const seqs = rows.map(({ seq }) => seq)
    const sql = `SELECT ${COLUMNS} FROM events WHERE seq IN (SELECT value FROM json_each(?1)) ORDER BY seq`
    if (JSON.stringify(unit.allOf<EventRow>(seqs, sql)) !== JSON.stringify(rows)) return false
    this.#inbox.forgets(unit, Math.max(0, ...rows.map(({ accepted_at }) => accepted_at + 1)))
    unit.allOf(seqs, 'DELETE FROM events WHERE seq IN (SELECT value FROM json_each(?1))')
    return true
  }

  /** Deletes up to `limit` expired events. */
  forget(unit: Unit, { before, kept, floor }: Expiry, limit: number): number {
    const sql = `DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE ${EXPIRED} ORDER BY seq LIMIT ?4) RETURNING seq`
    const forgotten = unit.all(sql, before, JSON.stringify(kept), floor, limit).length
    if (forgotten > 0) this.#inbox.forgets(unit, before)
    return forgotten
  }
}
