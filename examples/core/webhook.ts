// A webhook: the request is answered once the event is stored. A worker acks it, or gives it back.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { httpRequest, withDefaults, type EventOf } from 'reflex-agents/core'
import { SqliteStore } from 'reflex-agents/core/node'

type Request = EventOf<typeof httpRequest>
const store = SqliteStore.open<Request>(':memory:', { poll_ms: 50 })
const stop = new AbortController()

/** The HTTP status. An event with an id that is stored already is a duplicate: nothing changes. */
async function accept(request: IncomingMessage): Promise<number> {
  const event = { type: 'http.request', method: request.method, path: request.url, body: await json(request).catch(() => null) }
  const parsed = httpRequest.safeParse(withDefaults(event, { now: Date.now(), source: 'web', scope: 'orders' }))
  if (!parsed.success || event.body === null) return 400
  await store.publish(parsed.data)
  return 202
}

async function work(): Promise<void> {
  for await (const { event, ack_token, attempts } of store.subscribe({ scope: 'orders', signal: stop.signal })) {
    console.log(`attempt ${attempts}: ${event.method} ${event.path} ${JSON.stringify(event.body)}`)
    // The first attempt fails. The event returns after half a second or more.
    if (attempts === 1) await store.nack(ack_token, 'the shop is closed')
    else if (await store.ack(ack_token)) stop.abort()
  }
}

const server = createServer((request, response) => void accept(request).then((status) => response.writeHead(status).end()))
await once(server.listen(0, '127.0.0.1'), 'listening')
const address = server.address()
const { port } = typeof address === 'object' && address ? address : { port: 0 }
const { status } = await fetch(`http://127.0.0.1:${port}/orders`, { method: 'POST', body: '{"order": 7}' })
console.log(`answered ${status}`)
await work()
server.close()
store.close()
