import type { Event } from '../../core/event.ts'
import { byteLength } from '../../base/json.ts'
import type { Database, Unit } from '../../kernel/unit.ts'

type ContextRow = { seq: number; event: Event; size: number }

/** The state key of the floor. */
const FLOOR = 'context_floor'
const ENDED = `status NOT IN ('pending', 'processing')`
/**
 * `?1` is the floor. Events without an outcome belong to the context wherever they are: an event
 * that is retried may be older than all others.
 */
const rowsOf = (columns: string): string => `SELECT ${columns} FROM events WHERE in_context = 1 AND seq >= ?1
  UNION ALL SELECT ${columns} FROM events WHERE in_context = 1 AND seq < ?1 AND status = 'pending'
  UNION ALL SELECT ${columns} FROM events INDEXED BY events_lease WHERE in_context = 1 AND seq < ?1 AND status = 'processing'`

/**
 * The events of the DecisionContext: those marked `in_context` from the floor on, and older ones
 * without an outcome. The oldest leave the context when the floor rises, which writes one row for
 * all of them.
 */
export class ContextRows {
  readonly #database: Database
  #floor: number

  constructor(database: Database) {
    this.#database = database
    this.#floor = database.read(FLOOR, 0)
  }

  /** Events below it that have an outcome are not in the context. */
  get floor(): number {
    return this.#floor
  }

  count(): number {
    return this.#database.first<{ n: number }>(`SELECT count(*) AS n FROM (${rowsOf('seq')})`, this.#floor)?.n ?? 0
  }

  seqs(): number[] {
    return this.#database.all<{ seq: number }>(`SELECT seq FROM (${rowsOf('seq')}) ORDER BY seq`, this.#floor).map(({ seq }) => seq)
  }

  /** The newest events up to place `last`, oldest first: at most `limit`, and `bytes` of JSON. */
  newest(limit: number, last: number, bytes: number): ContextRow[] {
    return this.#database
      .all<{ seq: number; payload: string }>(
        `SELECT seq, payload FROM (SELECT seq, payload, sum(octet_length(payload)) OVER (ORDER BY seq DESC) AS bytes
          FROM (SELECT * FROM (${rowsOf('seq, payload')}) WHERE seq <= ?2 ORDER BY seq DESC LIMIT ?3)) WHERE bytes <= ?4 ORDER BY seq`,
        this.#floor,
        last,
        limit,
        bytes,
      )
      .map(({ seq, payload }) => ({ seq, event: JSON.parse(payload) as Event, size: byteLength(payload) }))
  }

  hasBefore(seq: number): boolean {
    return this.#database.first(`SELECT 1 FROM (${rowsOf('seq')}) WHERE seq < ?2 LIMIT 1`, this.#floor, seq) !== undefined
  }

  /** The oldest events that have an outcome, at most `limit`. */
  oldest(limit: number): number[] {
    return this.#ended('true', limit)
  }

  /** The newest events up to place `last` that have an outcome, at most `limit`. */
  ended(last: number, limit: number): number[] {
    const sql = `SELECT seq FROM events WHERE in_context = 1 AND seq BETWEEN ?1 AND ?2 AND ${ENDED} ORDER BY seq DESC LIMIT ?3`
    return this.#database.all<{ seq: number }>(sql, this.#floor, last, limit).map(({ seq }) => seq)
  }

  /** The events that have an outcome and were accepted before `before`, in ms. */
  before(before: number): number[] {
    return this.#ended('accepted_at < ?3', -1, before)
  }

  /** The events that `remove` would remove once the events `ending` have ended. */
  removable(seqs: readonly number[], ending: readonly number[] = []): number[] {
    const rows = this.#database.allOf<{ seq: number }>(
      seqs,
      `SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND in_context = 1
        AND ((seq >= ?2 AND ${ENDED}) OR seq IN (SELECT value FROM json_each(?3)))`,
      this.#floor,
      JSON.stringify(ending),
    )
    return rows.map(({ seq }) => seq)
  }

  /** The events that ended in the open unit and left the context with it. */
  left(seqs: readonly number[]): number[] {
    const below = seqs.filter((seq) => seq < this.#floor)
    if (below.length === 0) return []
    const sql = 'SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND in_context = 1'
    return this.#database.allOf<{ seq: number }>(below, sql).map(({ seq }) => seq)
  }

  /** Removes the events of this list that have an outcome, and returns them. */
  remove(unit: Unit, seqs: readonly number[]): number[] {
    const floor = this.#floor
    const removed = this.removable(seqs)
    if (removed.length === 0) return removed
    const last = Math.max(...removed)
    const kept = unit.first<{ seq: number | null }>(
      `SELECT min(seq) AS seq FROM events WHERE seq >= ?1 AND seq <= ?2 AND in_context = 1 AND seq NOT IN (SELECT value FROM json_each(?3))`,
      floor,
      last,
      JSON.stringify(removed),
    )
    this.#floor = kept?.seq ?? last + 1
    if (this.#floor > floor) unit.write(FLOOR, this.#floor)
    unit.allOf(
      removed.filter((seq) => seq >= this.#floor),
      'UPDATE events SET in_context = 0 WHERE seq IN (SELECT value FROM json_each(?1))',
    )
    return removed
  }

  #ended(condition: string, limit: number, ...params: number[]): number[] {
    const sql = `SELECT seq FROM events WHERE in_context = 1 AND seq >= ?1 AND ${ENDED} AND ${condition} ORDER BY seq LIMIT ?2`
    return this.#database.all<{ seq: number }>(sql, this.#floor, limit, ...params).map(({ seq }) => seq)
  }
}
