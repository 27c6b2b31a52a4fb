import { ADMIN_KEY_ID } from '../../contract/principal.ts'
import { withDeadline } from '../../base/deadline.ts'
import { limits } from '../../base/limits.ts'
import { warn } from '../../base/warn.ts'
import type { Connect } from '../../contract/scope-api.ts'
import type { Sockets } from './sockets.ts'
import type { Streams } from './sse.ts'
import type { Refused } from '../../base/result.ts'
import type { Unit } from '../storage/unit.ts'

const EVERY_MS = 60_000
const TIMEOUT_MS = 10_000

/** Sockets or streams, by the ids of their keys. */
type Connections = { readonly keys: readonly string[]; end: (keys: ReadonlySet<string>) => void }
type Parts = {
  scope: string
  /** Returns the keys that still exist. */
  existing: (keys: string[]) => Promise<Set<string>>
  connections: () => readonly Connections[]
  now: () => number
}

/**
 * Closes connections soon after their key is deleted. While connections are in use, it queries D1
 * for all of their keys, in the background and at most once a minute. It needs no alarm: nothing is
 * sent or received while the object sleeps. Keys are created and deleted but never changed, so it
 * is enough to check that they exist.
 */
export class KeyCheck {
  readonly #parts: Parts
  #next = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Call it on every use of a connection. */
  used(): void {
    const now = this.#parts.now()
    if (now < this.#next) return
    this.#next = now + EVERY_MS
    void this.#check()
  }

  async #check(): Promise<void> {
    const { scope, existing, connections } = this.#parts
    // The bootstrap key is in no table.
    const keys = new Set(connections().flatMap((some) => some.keys))
    keys.delete(ADMIN_KEY_ID)
    if (keys.size === 0) return
    try {
      const found = await withDeadline(() => existing([...keys]), { timeout_ms: TIMEOUT_MS, what: 'D1' })
      // Only keys that were queried: a connection may have opened meanwhile.
      const deleted = new Set([...keys].filter((key) => !found.has(key)))
      for (const some of connections()) some.end(deleted)
    } catch (error) {
      warn({
        message: 'could not check the keys of open connections; the next check retries',
        scope,
        error,
      })
    }
  }
}

/** Opens a connection for the caller in the Worker's header; 429 if its key has too many. */
export function openConnection(request: Request, { sockets, streams }: { sockets: Sockets; streams: Streams }): Response {
  const connect = JSON.parse(request.headers.get('x-reflex-connect') ?? 'null') as Connect | null
  if (!connect) return new Response(null, { status: 400 })
  const own = [...sockets.keys, ...streams.keys].filter((key_id) => key_id === connect.key_id)
  if (own.length >= limits.connections_per_key) return new Response(null, { status: 429 })
  return request.headers.get('upgrade')?.toLowerCase() === 'websocket' ? sockets.connect(connect) : streams.open(connect)
}

/**
 * Tickets of this scope that were used and have not expired. The Worker verifies a ticket first. A
 * ticket works once because its nonce can be inserted once.
 */
export class UsedTickets {
  /** The object's own clock decides when a nonce is dropped and from when on it is refused. */
  use(unit: Unit, nonce: string, expires_at: number): { ok: true } | Refused<'used' | 'too_many'> {
    const { now } = unit
    unit.all('DELETE FROM used_tickets WHERE expires_at <= ?', now)
    if (expires_at <= now) return { ok: false, reason: 'used', detail: 'the ticket has expired' }
    const kept = unit.first<{ n: number }>('SELECT count(*) AS n FROM used_tickets')?.n ?? 0
    if (kept >= limits.tickets_per_scope) {
      return { ok: false, reason: 'too_many', detail: `${kept} tickets were used in this scope within a minute, which is the most` }
    }
    const insert = 'INSERT INTO used_tickets (nonce, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING nonce'
    if (unit.first(insert, nonce, expires_at) !== undefined) return { ok: true }
    return { ok: false, reason: 'used', detail: 'the ticket was used already' }
  }
}
