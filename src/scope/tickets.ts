import { createHash } from 'node:crypto'
import { randomHex } from '../core/event.ts'
import { limits } from '../protocol/limits.ts'
import type { Caller, Refused } from '../protocol/scope-api.ts'
import type { Database } from './database.ts'

/** One-time tickets that a browser passes in a URL, where it can set no header. Kept as hashes; gone once used or after 60 s. */
export class Tickets {
  readonly #database: Database
  readonly #now: () => number

  constructor(database: Database, now: () => number) {
    this.#database = database
    this.#now = now
  }

  issue(caller: Caller): { ok: true; ticket: string; expires_at: string } | Refused<'too_many'> {
    const now = this.#now()
    this.#database.all('DELETE FROM tickets WHERE expires_at <= ?', now)
    const open = this.#database.first<{ n: number }>('SELECT count(*) AS n FROM tickets')?.n ?? 0
    if (open >= limits.tickets_per_scope)
      return { ok: false, reason: 'too_many', detail: 'too many tickets of this scope are unused; wait a minute' }
    const ticket = `rft_${randomHex(32)}`
    const expires_at = now + limits.ticket_ms
    this.#database.all(
      'INSERT INTO tickets (hash, principal, expires_at) VALUES (?, ?, ?)',
      hashOf(ticket),
      JSON.stringify(caller),
      expires_at,
    )
    return { ok: true, ticket, expires_at: new Date(expires_at).toISOString() }
  }

  /** Once: the row is deleted in the same statement. A guess is compared by its hash, which tells nothing by its timing. */
  redeem(ticket: string): Caller | null {
    const row = this.#database.first<{ principal: string }>(
      'DELETE FROM tickets WHERE hash = ? AND expires_at > ? RETURNING principal',
      hashOf(ticket),
      this.#now(),
    )
    return row ? (JSON.parse(row.principal) as Caller) : null
  }
}

const hashOf = (ticket: string): string => createHash('sha256').update(ticket).digest('hex')
