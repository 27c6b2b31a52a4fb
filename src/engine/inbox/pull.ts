import type { Delivery } from '../../core/event-store.ts'
import type { ClaimRequest } from '../../contract/scope-api.ts'
import type { Refused } from '../../base/result.ts'
import type { SettledEvent } from './inbox.ts'
import { eventHead, headOf } from '../log/spans.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Event } from '../../core/event.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { KeyCheck } from '../live/sockets.ts'

type PullParts = Pick<Lanes, 'inbox' | 'settlement' | 'settings' | 'database' | 'unit'> & {
  /** Looks now and then whether the keys of claims still are valid. */
  key_check: Pick<KeyCheck, 'used' | 'watch'>
}

/** The pull API: an external consumer claims events under a lease and settles them by token. */
export class Pull {
  readonly #parts: PullParts
  #is_watched = false

  constructor(parts: PullParts) {
    this.#parts = parts
  }

  /** The keys that hold events. The ids of their claims begin with them. */
  get keys(): string[] {
    const sql = `SELECT DISTINCT substr(ack_token, 6, instr(substr(ack_token, 6), ':') - 1) AS key_id FROM events
      WHERE status = 'processing' AND ack_token GLOB 'pull:*:*:*'`
    return this.#parts.database.all<{ key_id: string }>(sql).map(({ key_id }) => key_id)
  }

  /** Nobody can acknowledge what a key holds that has ended: other consumers get it. */
  end(keys: ReadonlySet<string>): void {
    const why = 'the key of the claim was deleted or has expired'
    for (const key_id of keys)
      this.#parts.unit((unit) => {
        if (this.giveBack(unit, key_id, why) > 0) unit.wakeBy(unit.now)
      })
  }

  /** Claims as many events as fit one answer. A repeated `claim_id` gets the same events again. */
  claim(unit: Unit, request: ClaimRequest, by: string): { ok: true; deliveries: Delivery[] } | Refused<'not_pull'> {
    const { settings } = this.#parts
    if (settings().consumer !== 'pull') {
      return {
        ok: false,
        reason: 'not_pull',
        detail: 'this scope runs its own turns; PATCH it with {"consumer": "pull"} to claim its events',
      }
    }
    if (settings().paused) return { ok: true, deliveries: [] }
    this.#lookAtKeys()
    this.expire(unit)
    const lease_until = unit.now + request.lease_s * 1000
    const deliveries = this.#take(unit, request, lease_until)
    this.#note(unit, deliveries, new Date(lease_until).toISOString(), by)
    if (deliveries.length > 0) unit.wakeBy(lease_until)
    return { ok: true, deliveries }
  }

  /** From the first claim on, which few objects have. */
  #lookAtKeys(): void {
    if (!this.#is_watched) this.#parts.key_check.watch(this)
    this.#is_watched = true
    this.#parts.key_check.used()
  }

  #take(unit: Unit, { claim_id = crypto.randomUUID(), lease_s, ...which }: ClaimRequest, lease_until: number): Delivery[] {
    const { inbox } = this.#parts
    const held = renewed(unit, claim_id, lease_until)
    if (held.length > 0) return held
    const request = { ...which, ack_token: claimToken(claim_id), lease_ms: lease_s * 1000 }
    return inbox.claim(unit, request).map(({ event, ack_token, attempts }) => ({ event, ack_token, attempts }))
  }

  #note(unit: Unit, deliveries: readonly Delivery[], lease_until: string, by: string): void {
    const kind = 'event-claimed'
    unit.log(...deliveries.map(({ event, attempts }) => ({ ...headOf(event), kind, attempts, lease_until, by }) as const))
  }

  /** Releases a claim whose answer was never sent, without counting the attempt. */
  giveBack(unit: Unit, claim_id: string, why: string): number {
    const rows = returned(unit, claim_id)
    const kind = 'event-returned'
    unit.log(...rows.map((row) => ({ ...eventHead(row), kind, attempts: row.attempts, why }) as const))
    return rows.length
  }

  ack(unit: Unit, tokens: readonly string[]): { acked: string[]; stale: string[] } {
    this.expire(unit)
    const acked: string[] = []
    const seqs: number[] = []
    for (const token of new Set(tokens)) {
      const seq = this.#parts.inbox.claimedBy(token)
      if (seq === null) continue
      acked.push(token)
      seqs.push(seq)
    }
    this.#parts.settlement.end(unit, seqs, { status: 'completed', outcome: { by: 'pull' } })
    return { acked, stale: tokens.filter((token) => !acked.includes(token)) }
  }

  nack(unit: Unit, token: string, error: string): { ok: true; status: string; due_at: string | null } | Refused<'stale'> {
    const { inbox, settlement } = this.#parts
    this.expire(unit)
    const rows = inbox.nack(unit, token, settlement.failure(unit, error))
    settlement.failed(unit, rows, { error })
    const [row] = rows
    if (!row) return { ok: false, reason: 'stale', detail: 'this token was settled already, or its lease has run out' }
    return { ok: true, status: row.status, due_at: row.status === 'pending' ? new Date(row.due_at).toISOString() : null }
  }

  /** Releases events whose lease expired; the attempt counts. */
  expire(unit: Unit): void {
    const { inbox, settlement } = this.#parts
    const error = 'the lease ran out before the event was acknowledged'
    settlement.failed(unit, inbox.expire(unit, { ...settlement.failure(unit, error), jitter: 0 }), { error })
  }
}

type ClaimRow = { seq: number; payload: string; ack_token: string; attempts: number }

/** The prefix of a claim's tokens. */
const claimToken = (claim_id: string): string => `pull:${claim_id}:`

/** Selects tokens with the prefix ?1; `;` is the character after `:`. */
const OF_CLAIM = `status = 'processing' AND ack_token >= ?1 AND ack_token < substr(?1, 1, length(?1) - 1) || ';'`

/** Returns a claim's unsettled events with a new lease, for a repeated request. */
function renewed(unit: Unit, claim_id: string, lease_until: number): Delivery[] {
  return unit
    .all<ClaimRow>(
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
function returned(unit: Unit, claim_id: string): SettledEvent[] {
  return unit.all<SettledEvent>(
    `UPDATE events SET status = 'pending', attempts = max(0, attempts - 1), due_at = 0,
      ack_token = NULL, lease_until = NULL WHERE ${OF_CLAIM}
      RETURNING seq, scope, id, trace_id, attempts`,
    claimToken(claim_id),
  )
}
