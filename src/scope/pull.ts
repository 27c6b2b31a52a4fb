import type { Delivery } from '../core/event-store.ts'
import type { Refused } from '../protocol/scope-api.ts'
import type { Settings } from '../protocol/settings.ts'
import type { Alarm } from './alarm.ts'
import type { Inbox } from './inbox.ts'
import type { Log } from './log.ts'
import type { Settlement } from './settlement.ts'
import { headOf } from './spans.ts'

type Parts = { inbox: Inbox; log: Log; settlement: Settlement; alarm: Alarm; settings: () => Settings; now: () => number }
export type ClaimRequest = { limit: number; lease_s: number; types?: string[] | undefined }

/** The pull loop: an outside process claims events under a lease, and settles them by their tokens. */
export class Pull {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  claim({ limit, lease_s, types }: ClaimRequest, by: string): { ok: true; deliveries: Delivery[] } | Refused<'not_pull'> {
    const { inbox, log, settings, alarm, now } = this.#parts
    if (settings().consumer !== 'pull') {
      return {
        ok: false,
        reason: 'not_pull',
        detail: 'this scope runs its own turns; PATCH it with {"consumer": "pull"} to claim its events',
      }
    }
    this.expire()
    const lease_ms = lease_s * 1000
    const claimed = inbox.claim({ ack_token: `${crypto.randomUUID()}:`, now: now(), lease_ms, limit, types })
    const lease_until = new Date(now() + lease_ms).toISOString()
    log.append(
      claimed.map(({ event, attempts }) => ({
        ...headOf(event),
        kind: 'event-claimed',
        attempts,
        lease_until,
        by,
      })),
    )
    if (claimed.length > 0) alarm.by(now() + lease_ms)
    return { ok: true, deliveries: claimed.map(({ event, ack_token, attempts }) => ({ event, ack_token, attempts })) }
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
    settlement.failed(rows, error)
    const [row] = rows
    if (!row) return { ok: false, reason: 'stale', detail: 'this token was settled already, or its lease has run out' }
    return { ok: true, status: row.status, due_at: row.status === 'pending' ? new Date(row.due_at).toISOString() : null }
  }

  /** Gives back what was claimed by a process that died; the attempt counts. */
  expire(): void {
    const { inbox, settlement, settings, now } = this.#parts
    settlement.failed(inbox.expire(now(), settings().max_attempts), 'the lease ran out before the event was acknowledged')
  }
}
