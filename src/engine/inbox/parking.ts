import type { Database, Unit } from '../../kernel/unit.ts'
import { UNTIL_SETTLED, type ParkedFor } from './inbox.ts'

/** Events released because a turn could not call its model; `Inbox.release` parks them. */
export class Parking {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Makes the events that wait for `reason` due now, or all. */
  release(unit: Unit, reason: ParkedFor | null = null): void {
    unit.all(
      `UPDATE events SET due_at = 0
        WHERE status = 'pending' AND parked IS NOT NULL AND (?1 IS NULL OR parked = ?1)`,
      reason,
    )
  }

  /** True if an event waits for `reason` beyond this time. */
  waits(reason: ParkedFor, after: number): boolean {
    const one = `SELECT 1 AS one FROM events WHERE status = 'pending' AND due_at > 0 AND due_at > ? AND parked = ? LIMIT 1`
    return this.#database.first(one, after, reason) !== undefined
  }

  /** Returns the events of `seqs` parked for `reason` since `before` or earlier. */
  since(seqs: readonly number[], reason: ParkedFor, before: number): number[] {
    const rows = this.#database.allOf<{ seq: number }>(
      seqs,
      'SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND parked = ?2 AND parked_at <= ?3',
      reason,
      before,
    )
    return rows.map(({ seq }) => seq)
  }

  /** Corrects times that a fast clock left too far in the future. */
  correct(unit: Unit, ahead_ms: number): void {
    const { now } = unit
    const earlier = (column: string) => `${column} = max(?1, ${column} - ?2)`
    unit.all(`UPDATE events SET ${earlier('due_at')} WHERE status = 'pending' AND due_at > ?1`, now, ahead_ms)
    unit.all(
      `UPDATE events SET ${earlier('lease_until')} WHERE status = 'processing' AND lease_until > ?1 AND lease_until < ?3`,
      now,
      ahead_ms,
      UNTIL_SETTLED,
    )
    unit.all(`UPDATE events SET parked_at = ?1 WHERE status IN ('pending', 'processing') AND parked_at > ?1`, now)
  }
}
