import { UNTIL_SETTLED } from './inbox.ts'
import type { Unit } from '../unit.ts'

/** Events that a reflex's action in the effect lane holds: no turn considers them meanwhile. */
export class HeldEvents {
  /** For events that were stored before; new ones are stored as held. */
  hold(unit: Unit, seq: number): void {
    unit.all(
      `UPDATE events SET status = 'processing', ack_token = 'reflex:' || seq, lease_until = ?2, revision = revision + 1 WHERE seq = ?1 AND status = 'pending'`,
      seq,
      UNTIL_SETTLED,
    )
  }

  /** The action failed: its event waits for a turn, as if no reflex had fired. */
  giveBack(unit: Unit, seq: number): void {
    unit.all(
      `UPDATE events SET status = 'pending', due_at = 0, ack_token = NULL, lease_until = NULL, revision = revision + 1 WHERE seq = ? AND status = 'processing'`,
      seq,
    )
  }
}
