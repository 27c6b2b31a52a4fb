import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type ReceivedRequest = { method: string; url: string; headers: IncomingHttpHeaders; body: string }
export type SentResponse = { status: number; body: Record<string, unknown> }
/** An event stream of JSON, as models answer that stream. */
export type Streamed = { status: 200; events: readonly object[] }

/** A JSON server on a free local port. `host` is `127.0.0.1:PORT`. */
export async function listen(answer: (asked: ReceivedRequest) => SentResponse | Streamed): Promise<{ host: string; stop: () => void }> {
  const server = createServer((request, response) => {
    serve(request, response, answer).catch((error: unknown) => response.writeHead(500).end(String(error)))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, stop }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  answer: (asked: ReceivedRequest) => SentResponse | Streamed,
): Promise<void> {
  const { method = 'GET', url = '/', headers } = request
  const answered = answer({ method, url, headers, body: await text(request) })
  const [type, content] =
    'events' in answered ? ['text/event-stream', streamOf(answered.events)] : ['application/json', JSON.stringify(answered.body)]
  response.writeHead(answered.status, { 'content-type': type }).end(content)
}

const streamOf = (events: readonly object[]): string =>
  [...events.map((event) => JSON.stringify(event)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('')
