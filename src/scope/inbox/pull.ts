import type { Delivery } from '../../core/event-store.ts'
import type { ClaimRequest, Refused } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Alarm } from '../alarm.ts'
import type { Inbox } from './inbox.ts'
import type { Log } from '../log.ts'
import type { Settlement } from './settlement.ts'
import { claimToken, type PullClaims } from './pull-claims.ts'
import { eventHead, headOf } from '../spans.ts'

type Parts = {
  inbox: Inbox
  claims: PullClaims
  log: Log
  settlement: Settlement
  alarm: Alarm
  settings: () => Settings
  now: () => number
}

/** The pull loop: an outside process claims events under a lease, and settles them by their tokens. */
export class Pull {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** As much as fits one answer. The same `claim_id` again gets what it had before, and no attempt counts. */
  claim(request: ClaimRequest, by: string): { ok: true; deliveries: Delivery[] } | Refused<'not_pull'> {
    const { settings, alarm, now } = this.#parts
    if (settings().consumer !== 'pull') {
      return {
        ok: false,
        reason: 'not_pull',
        detail: 'this scope runs its own turns; PATCH it with {"consumer": "pull"} to claim its events',
      }
    }
    this.expire()
    const lease_until = now() + request.lease_s * 1000
    const deliveries = this.#take(request, lease_until)
    this.#note(deliveries, new Date(lease_until).toISOString(), by)
    if (deliveries.length > 0) alarm.by(lease_until)
    return { ok: true, deliveries }
  }

  #take({ claim_id = crypto.randomUUID(), lease_s, ...which }: ClaimRequest, lease_until: number): Delivery[] {
    const { inbox, claims, now } = this.#parts
    const held = claims.renew(claim_id, lease_until)
    if (held.length > 0) return held
    const request = { ...which, ack_token: claimToken(claim_id), now: now(), lease_ms: lease_s * 1000 }
    return inbox.claim(request).map(({ event, ack_token, attempts }) => ({ event, ack_token, attempts }))
  }

  #note(deliveries: readonly Delivery[], lease_until: string, by: string): void {
    const kind = 'event-claimed'
    this.#parts.log.append(deliveries.map(({ event, attempts }) => ({ ...headOf(event), kind, attempts, lease_until, by })))
  }

  /** Takes back a claim whose answer could not be sent: nobody saw its events, so no attempt counts. */
  giveBack(claim_id: string, why: string): number {
    const rows = this.#parts.claims.giveBack(claim_id)
    const kind = 'event-returned'
    this.#parts.log.append(rows.map((row) => ({ ...eventHead(row), kind, attempts: row.attempts, why })))
    return rows.length
  }

  ack(tokens: readonly string[]): { acked: string[]; stale: string[] } {
    this.expire()
    const acked: string[] = []
    const seqs: number[] = []
    for (const token of new Set(tokens)) {
      const seq = this.#parts.inbox.claimedBy(token)
      if (seq === null) continue
      acked.push(token)
      seqs.push(seq)
    }
    this.#parts.settlement.end(seqs, 'completed', { by: 'pull' })
    return { acked, stale: tokens.filter((token) => !acked.includes(token)) }
  }

  nack(token: string, error: string): { ok: true; status: string; due_at: string | null } | Refused<'stale'> {
    const { inbox, settlement } = this.#parts
    this.expire()
    const rows = inbox.nack(token, settlement.failure(error))
    settlement.failed(rows, { error })
    const [row] = rows
    if (!row) return { ok: false, reason: 'stale', detail: 'this token was settled already, or its lease has run out' }
    return { ok: true, status: row.status, due_at: row.status === 'pending' ? new Date(row.due_at).toISOString() : null }
  }

  /** Gives back what was claimed by a process that died; the attempt counts. */
  expire(): void {
    const { inbox, settlement } = this.#parts
    const error = 'the lease ran out before the event was acknowledged'
    settlement.failed(inbox.expire({ ...settlement.failure(error), jitter: 0 }), { error })
  }
}
