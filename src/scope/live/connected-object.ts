import { DurableObject } from 'cloudflare:workers'
import type { Env } from '../../env.ts'
import { CALLER } from '../upkeep/guard.ts'
import type { UnitOfWork } from '../storage/unit.ts'
import { openConnection, useTicket } from './connections.ts'
import type { SocketMessages } from './socket-messages.ts'
import type { Sockets } from './sockets.ts'
import type { Streams } from './sse.ts'

type Connections = { sockets: Sockets; streams: Streams; socket_messages: SocketMessages; unit: UnitOfWork }

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

  override webSocketClose(socket: WebSocket): void {
    this.connections.socket_messages.closed(socket)
  }

  override webSocketError(socket: WebSocket): void {
    this.connections.socket_messages.closed(socket)
  }
}
