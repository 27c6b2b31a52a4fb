import type { Event } from '../../core/event.ts'
import type { Delivery } from '../../core/event-store.ts'
import type { Settled } from './inbox.ts'
import type { Unit } from '../unit.ts'

type Row = { seq: number; payload: string; ack_token: string; attempts: number }

/** Every token of one claim begins with this. */
export const claimToken = (claim_id: string): string => `pull:${claim_id}:`

/** Tokens that begin with ?1; `;` is the character behind `:`. */
const OF_CLAIM = `status = 'processing' AND ack_token >= ?1 AND ack_token < substr(?1, 1, length(?1) - 1) || ';'`

/** The events that one claim took, as a whole: to be answered once more, or to be given back. */
export class PullClaims {
  /** What is left of a claim whose answer did not arrive, with a new lease. */
  renew(unit: Unit, claim_id: string, lease_until: number): Delivery[] {
    return unit
      .all<Row>(
        `UPDATE events SET lease_until = ?2, revision = revision + 1 WHERE ${OF_CLAIM}
          RETURNING seq, payload, ack_token, attempts`,
        claimToken(claim_id),
        lease_until,
      )
      .sort((left, right) => left.seq - right.seq)
      .map(({ payload, ack_token, attempts }) => ({
        event: JSON.parse(payload) as Event,
        ack_token,
        attempts,
      }))
  }

  /** As if it had never been made: the attempt does not count. */
  giveBack(unit: Unit, claim_id: string): Settled[] {
    return unit.all<Settled>(
      `UPDATE events SET status = 'pending', attempts = max(0, attempts - 1), due_at = 0,
        ack_token = NULL, lease_until = NULL, revision = revision + 1 WHERE ${OF_CLAIM}
        RETURNING seq, id, trace_id, attempts`,
      claimToken(claim_id),
    )
  }
}
