import { DurableObject } from 'cloudflare:workers'
import type { Env } from '../../env.ts'
import { CALLER } from '../upkeep/guard.ts'
import type { UnitOfWork, Unit } from '../../kernel/unit.ts'
import { closeQuietly, type Sockets } from './sockets.ts'
import type { SocketMessages } from './socket-messages.ts'
import type { Streams } from './sse.ts'
import { limits } from '../../base/limits.ts'
import type { Connect } from '../../contract/scope-api.ts'
import type { Refused } from '../../base/result.ts'

/** Opens a connection for the caller in the Worker's header; 429 if its key has too many. */
function openConnection(request: Request, { sockets, streams }: { sockets: Sockets; streams: Streams }): Response {
  const connect = JSON.parse(request.headers.get('x-reflex-connect') ?? 'null') as Connect | null
  if (!connect) return new Response(null, { status: 400 })
  const own = [...sockets.keys, ...streams.keys].filter((key_id) => key_id === connect.key_id)
  if (own.length >= limits.connections_per_key) return new Response(null, { status: 429 })
  return request.headers.get('upgrade')?.toLowerCase() === 'websocket' ? sockets.connect(connect) : streams.open(connect, sockets.answer)
}

/**
 * Uses a ticket, which works once because its nonce can be inserted once. The object's own clock
 * decides when a nonce is dropped and from when on it is refused.
 */
function useTicket(unit: Unit, nonce: string, expires_at: number): { ok: true } | Refused<'used' | 'too_many'> {
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

type Connections = { sockets: Sockets; streams: Streams; socket_messages: SocketMessages; unit: UnitOfWork }

/** A close without a code, or that was never sent, has a code that no side may send. */
const sendable = (code: number): number => (UNSENDABLE.has(code) ? NORMAL : code)
const UNSENDABLE: ReadonlySet<number> = new Set([1005, 1006, 1015])
const NORMAL = 1000

/** The object as the runtime's handler of its sockets and streams. */
export abstract class ConnectedObject extends DurableObject<Env> {
  protected abstract get connections(): Connections

  /** Only the Worker calls this, after authentication; a header names the caller. */
  override async fetch(request: Request): Promise<Response> {
    return openConnection(request, this.connections)
  }

  async useTicket(nonce: string, expires_at: number) {
    return this.connections.unit((unit) => useTicket(unit, nonce, expires_at), CALLER)
  }

  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): void {
    this.connections.socket_messages.message(socket, message)
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    this.connections.socket_messages.closed(socket)
    // Until the server closes its side, the client waits, and sees the close as 1006.
    closeQuietly(socket, { code: sendable(code), reason })
  }

  override webSocketError(socket: WebSocket): void {
    this.connections.socket_messages.closed(socket)
  }
}
