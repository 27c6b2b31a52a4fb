import type { Event } from '../../core/event.ts'
import type { Delivery } from '../../core/event-store.ts'
import type { Settled } from './inbox.ts'
import type { Unit } from '../unit.ts'

type Row = { seq: number; payload: string; ack_token: string; attempts: number }

/** The prefix of a claim's tokens. */
export const claimToken = (claim_id: string): string => `pull:${claim_id}:`

/** Selects tokens with the prefix ?1; `;` is the character after `:`. */
const OF_CLAIM = `status = 'processing' AND ack_token >= ?1 AND ack_token < substr(?1, 1, length(?1) - 1) || ';'`

/** Repeats or releases the events of one claim. */
export class PullClaims {
  /** Returns a claim's unsettled events with a new lease, for a repeated request. */
  renew(unit: Unit, claim_id: string, lease_until: number): Delivery[] {
    return unit
      .all<Row>(
        `UPDATE events SET lease_until = ?2 WHERE ${OF_CLAIM}
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

  /** Releases the claim without counting the attempt. */
  giveBack(unit: Unit, claim_id: string): Settled[] {
    return unit.all<Settled>(
      `UPDATE events SET status = 'pending', attempts = max(0, attempts - 1), due_at = 0,
        ack_token = NULL, lease_until = NULL WHERE ${OF_CLAIM}
        RETURNING seq, id, trace_id, attempts`,
      claimToken(claim_id),
    )
  }
}
