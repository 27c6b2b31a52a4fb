import type { Event } from '../../core/event.ts'
import { limits } from '../../base/limits.ts'
import type { Database } from '../storage/database.ts'
import type { Unit } from '../storage/unit.ts'
import type { Claimed } from './event-row.ts'

type Remembered = { find: (seq: number) => Event | undefined }
/** An event that waits for a turn, and the turns that considered it without success. */
export type DueEvent = Claimed & { earlier_turns: string[] }
/** `parked`: the reason for waiting until `due_at`, at most `most_ms` in total. */
/** The resource that a parked event waits for. */
export type ParkedFor = 'budget' | 'model'
type Release = { due_at: number; parked?: { reason: ParkedFor; now: number; most_ms?: number }; interrupted?: boolean }

/** A lease without expiry: a turn's claim ends with the turn or at the object's next start. */
export const UNTIL_SETTLED = Number.MAX_SAFE_INTEGER
/** A turn's claim on an event is this, followed by the event's `seq`. */
export const turnToken = (turn_id: string): string => `turn:${turn_id}:`

/** The inbox as turns use it: the events that wait for one, and its claim on them. */
export class TurnRows {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Selects the oldest due events that wait for a turn, up to `limit` and a size that the context
   * can show. Reads only events that the memory lacks. Their `attempts` include the turn's.
   */
  dueForTurn(now: number, { limit, memory }: { limit: number; memory: Remembered }): DueEvent[] {
    const rows: { seq: number; attempts: number; turns: string | null }[] = []
    const sql = `SELECT seq, attempts, turns, octet_length(payload) AS bytes FROM events
      WHERE status = 'pending' AND in_context = 1 AND due_at <= ? ORDER BY seq LIMIT ?`
    let size = 0
    for (const { bytes, ...row } of this.#database.all<(typeof rows)[number] & { bytes: number }>(sql, now, limit)) {
      if (size >= limits.context_bytes) break
      size += bytes
      rows.push(row)
    }
    const read = this.#read(rows.map(({ seq }) => seq).filter((seq) => !memory.find(seq)))
    return rows.map(({ seq, attempts, turns }) => ({
      seq,
      attempts: attempts + 1,
      event: memory.find(seq) ?? (JSON.parse(read.get(seq) ?? '') as Event),
      earlier_turns: turns === null ? [] : (JSON.parse(turns) as string[]),
    }))
  }

  /** Claims pending events for a turn. */
  hold(unit: Unit, turn_id: string, seqs: readonly number[]): void {
    unit.allOf(
      seqs,
      `UPDATE events SET status = 'processing', attempts = attempts + 1, ack_token = ?2 || seq, lease_until = ?3
        WHERE seq IN (SELECT value FROM json_each(?1)) AND status = 'pending'`,
      turnToken(turn_id),
      UNTIL_SETTLED,
    )
  }

  nextForTurn(now: number): number | null {
    const due = `SELECT seq FROM events WHERE status = 'pending' AND in_context = 1 AND due_at <= ? ORDER BY seq LIMIT 1`
    return this.#database.first<{ seq: number }>(due, now)?.seq ?? null
  }

  /** Releases a turn's events without counting the attempt. */
  release(unit: Unit, turn_id: string, { due_at, parked, interrupted }: Release): { seq: number }[] {
    return unit.all<{ seq: number }>(
      `UPDATE events SET status = 'pending', attempts = max(0, attempts - 1), due_at = CASE WHEN ?4 THEN ?2 + (1000 << min(interruptions, 8))
          ELSE min(?2, coalesce(CASE WHEN parked = ?3 THEN parked_at END, ?6, ?2) + ?7) END, parked = ?3,
        parked_at = CASE WHEN ?3 IS NULL THEN NULL WHEN parked = ?3 THEN coalesce(parked_at, ?6) ELSE ?6 END,
        interruptions = interruptions + ?4, turns = CASE WHEN EXISTS (SELECT 1 FROM effects WHERE owner = ?5) OR EXISTS (SELECT 1 FROM skill_runs WHERE cause = ?5) THEN json_insert(coalesce(turns, '[]'), '$[#]', ?5) ELSE turns END,
        ack_token = NULL, lease_until = NULL
        WHERE status = 'processing' AND ack_token >= ?1 AND ack_token < ?1 || ':' RETURNING seq`,
      turnToken(turn_id),
      due_at,
      parked?.reason ?? null,
      interrupted ? 1 : 0,
      turn_id,
      parked?.now ?? null,
      parked?.most_ms ?? UNTIL_SETTLED / 2,
    )
  }

  #read(seqs: readonly number[]): Map<number, string> {
    if (seqs.length === 0) return new Map()
    const sql = 'SELECT seq, payload FROM events WHERE seq IN (SELECT value FROM json_each(?1))'
    const rows = this.#database.allOf<{ seq: number; payload: string }>(seqs, sql)
    return new Map(rows.map(({ seq, payload }) => [seq, payload]))
  }
}
