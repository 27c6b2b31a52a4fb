import type { Database } from '../database.ts'
import { UNTIL_SETTLED } from '../inbox/inbox.ts'

/** Events whose reflex is at work in the effect lane: nobody else considers them meanwhile. Within units of work. */
export class HeldEvents {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** For events that were stored before; new ones are stored as held. */
  hold(seq: number): void {
    this.#database.all(
      `UPDATE events SET status = 'processing', ack_token = 'reflex:' || seq, lease_until = ?2, revision = revision + 1 WHERE seq = ?1 AND status = 'pending'`,
      seq,
      UNTIL_SETTLED,
    )
  }

  /** The action failed: its event waits for a turn, as if no reflex had fired. */
  giveBack(seq: number): void {
    this.#database.all(
      `UPDATE events SET status = 'pending', due_at = 0, ack_token = NULL, lease_until = NULL, revision = revision + 1 WHERE seq = ? AND status = 'processing'`,
      seq,
    )
  }
}
