import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type Asked = { method: string; url: string; headers: IncomingHttpHeaders; body: string }
export type Answer = { status: number; body: Record<string, unknown> }

/** A JSON server on a free local port. `host` is `127.0.0.1:PORT`. */
export async function listen(answer: (asked: Asked) => Answer): Promise<{ host: string; stop: () => void }> {
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

async function serve(request: IncomingMessage, response: ServerResponse, answer: (asked: Asked) => Answer): Promise<void> {
  const { method = 'GET', url = '/', headers } = request
  const { status, body } = answer({ method, url, headers, body: await text(request) })
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
