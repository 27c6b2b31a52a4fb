import { limits } from '../../base/limits.ts'
import type { Connect } from '../../contract/scope-api.ts'
import type { Sockets } from './sockets.ts'
import type { Streams } from './sse.ts'

/** Opens a socket or a stream for whom the Worker's header names: 429 where their key has too many open here. */
export function openConnection(request: Request, { sockets, streams }: { sockets: Sockets; streams: Streams }): Response {
  const connect = JSON.parse(request.headers.get('x-reflex-connect') ?? 'null') as Connect | null
  if (!connect) return new Response(null, { status: 400 })
  const own = [...sockets.keys, ...streams.keys].filter((key_id) => key_id === connect.key_id)
  if (own.length >= limits.connections_per_key) return new Response(null, { status: 429 })
  return request.headers.get('upgrade')?.toLowerCase() === 'websocket' ? sockets.connect(connect) : streams.open(connect)
}
