// Serves examples/chat.html at http://localhost:5180, and hands its calls on to Reflex: so the page and the API have one origin, as a browser wants it.
//
//   [REFLEX_URL=https://…] node examples/serve-chat.ts

import { readFileSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'

const { REFLEX_URL = 'http://localhost:8787', PORT = '5180' } = process.env
const page = join(import.meta.dirname, 'chat.html')

const server = createServer((incoming, outgoing) => {
  if (!incoming.url?.startsWith('/v1/')) {
    outgoing.setHeader('content-type', 'text/html; charset=utf-8').end(readFileSync(page))
    return
  }
  const forwarded = forward(incoming)
  forwarded.on('response', (answer) => answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers)))
  forwarded.on('error', (error) => outgoing.writeHead(502).end(`${REFLEX_URL} cannot be reached: ${error.message}`))
  incoming.pipe(forwarded)
})

// A WebSocket begins as a request too; once both sides have agreed, bytes go to and fro.
server.on('upgrade', (incoming, client) => {
  const forwarded = forward(incoming)
  forwarded.on('upgrade', (answer, upstream, first) => {
    const headers = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`)
    client.write(`HTTP/1.1 101 Switching Protocols\r\n${headers.join('')}\r\n`)
    client.write(first)
    upstream.pipe(client).pipe(upstream)
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on('error', () => other.destroy())
  })
  forwarded.on('response', (answer) => client.end(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n\r\n`))
  forwarded.on('error', () => client.destroy())
  forwarded.end()
})

server.listen(Number(PORT), 'localhost', () => console.log(`Open http://localhost:${PORT} (Reflex is at ${REFLEX_URL})`))

function forward({ url = '/', method = 'GET', headers }: IncomingMessage) {
  const target = new URL(url, REFLEX_URL)
  const request = target.protocol === 'https:' ? httpsRequest : httpRequest
  return request(target.href, { method, headers: { ...headers, host: target.host } })
}
