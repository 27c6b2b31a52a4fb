import { randomUUID } from 'node:crypto'
import { until } from './clients.ts'

type LogLine = { id: string; type: 'log.line'; scope: string; source: string; timestamp: string; host: string; line: string }

/** Lines of SSH logins. The filter reads each; the trigger reads those that pass, and declines. */
export function loginLines(count: number, scopeOf: (index: number) => string): LogLine[] {
  const timestamp = new Date().toISOString()
  return Array.from({ length: count }, (_, index) => {
    const scope = scopeOf(index)
    const address = `198.51.${index % 100}.${index % 251}`
    const line = `Dec 10 06:55:46 web-1 sshd[${24_200 + index}]: Accepted publickey for user${index % 50} from ${address} port ${40_000 + index} ssh2`
    return { id: randomUUID(), type: 'log.line', scope, source: 'bench', timestamp, host: 'web-1', line }
  })
}

/** These lines as JSON, with the time of now: events that come long after their own time differ. */
export const happeningNow = (lines: readonly LogLine[]): string =>
  JSON.stringify(lines.map((line) => ({ ...line, timestamp: new Date().toISOString() })))

export type ChatMessage = { id: string; type: 'ws.message'; connection_id: string; content: string }
export const chatMessage = (content = 'x'.repeat(200)): ChatMessage => ({
  id: randomUUID(),
  type: 'ws.message',
  connection_id: 'bench',
  content,
})

export function batches<Item>(items: readonly Item[], size: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size))
}

/** Runs a few requests at a time, each as soon as one before it is answered. */
export async function concurrently<Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>, lanes = 4): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const item of rest) await work(item)
    }),
  )
}

/** Events a second, for work that handles `count` of them. */
export async function rate(count: number, work: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await work()
  return (count / (performance.now() - start)) * 1000
}

type ToOutcomes = { scopes: readonly string[]; counted: (scope: string) => Promise<number>; send: () => Promise<void> }

/** Events a second, from the first request until each scope has counted its share of the events. */
export async function rateToOutcomes(count: number, { scopes, counted, send }: ToOutcomes): Promise<number> {
  const before = await Promise.all(scopes.map(async (scope) => [scope, await counted(scope)] as const))
  return rate(count, async () => {
    await send()
    for (const [scope, start] of before) {
      await until(async () => (await counted(scope)) >= start + count / scopes.length, { what: `all events in ${scope}` })
    }
  })
}

export async function connect(url: string): Promise<WebSocket> {
  const connection = new WebSocket(url)
  await new Promise((resolve, reject) => {
    connection.addEventListener('open', resolve)
    connection.addEventListener('error', () => reject(new Error(`no WebSocket at ${url.replace(/\?.*/, '')}`)))
  })
  // Sends marks back, as every client does.
  connection.addEventListener('message', ({ data }) => {
    const text = String(data)
    if (text.startsWith('{"type":"mark"')) connection.send(text)
  })
  return connection
}

export type Frame = { id?: string; type?: string; event_id?: string; entries?: { kind: string; event_ids?: string[] }[] }
export type Answers = (frame: Frame, id: string) => boolean

/** Milliseconds from sending a message until the frame that answers it arrives. */
export function exchange(connection: WebSocket, answers: Answers): Promise<number> {
  const message = chatMessage()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const start = performance.now()
  const late = setTimeout(() => reject(new Error(`no answer to event ${message.id} on the WebSocket within 10 s`)), 10_000)
  const heard = ({ data }: MessageEvent) => {
    const ms = performance.now() - start
    if (answers(JSON.parse(String(data)) as Frame, message.id)) resolve(ms)
  }
  const closed = ({ code, reason }: CloseEvent) => reject(new Error(`the WebSocket was closed: ${code} ${reason}`))
  connection.addEventListener('message', heard)
  connection.addEventListener('close', closed)
  connection.send(JSON.stringify(message))
  return promise.finally(() => {
    clearTimeout(late)
    connection.removeEventListener('message', heard)
    connection.removeEventListener('close', closed)
  })
}
