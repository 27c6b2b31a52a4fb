import { DurableObject } from 'cloudflare:workers'
import type { Env } from '../../env.ts'
import { CALLER } from '../upkeep/guard.ts'
import type { UnitOfWork } from '../storage/unit.ts'
import { openConnection, useTicket } from './connections.ts'
import { closeQuietly } from './socket-feed.ts'
import type { SocketMessages } from './socket-messages.ts'
import type { Sockets } from './sockets.ts'
import type { Streams } from './sse.ts'

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
