import type { Database } from './database.ts'
import type { Unit } from './unit.ts'

/** What an event waits for beside its time. */
export type ParkedFor = 'budget' | 'model'

/** Events that a turn gave back because it could not ask its model; `Inbox.release` parks them. */
export class Parking {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** They go on at once: those that wait for this, or all. */
  release(unit: Unit, reason: ParkedFor | null = null): void {
    unit.all(
      `UPDATE events SET due_at = 0, revision = revision + 1
        WHERE status = 'pending' AND parked IS NOT NULL AND (?1 IS NULL OR parked = ?1)`,
      reason,
    )
  }

  /** Of these, the ones that have waited for this since `before`, or longer. */
  since(seqs: readonly number[], reason: ParkedFor, before: number): number[] {
    const rows = this.#database.allOf<{ seq: number }>(
      seqs,
      'SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND parked = ?2 AND parked_at <= ?3',
      reason,
      before,
    )
    return rows.map(({ seq }) => seq)
  }
}
