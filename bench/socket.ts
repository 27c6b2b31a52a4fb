import { randomUUID } from 'node:crypto'
import type { Figure } from './figure.ts'
import { alternate, median } from './samples.ts'

export const socket: Figure = {
  name: 'socket',
  what: 'one WebSocket, event in to ack out, against insert and echo',
  unit: 'ms',
  target: { at_most: 1.5 },
  async measure({ reflex, bare, runs, progress }) {
    const [ours, echo] = [await connect(await reflex.socketUrl('bench/socket')), await connect(bare.socketUrl('socket'))]
    try {
      return await alternate({ runs, progress, ours: () => medianOf(ours, 500), bare: () => medianOf(echo, 500) })
    } finally {
      ours.close()
      echo.close()
      await reflex.quiet('bench/socket')
    }
  },
}

async function connect(url: string): Promise<WebSocket> {
  const connection = new WebSocket(url)
  await new Promise((resolve, reject) => {
    connection.addEventListener('open', resolve)
    connection.addEventListener('error', () => reject(new Error(`no WebSocket at ${url.replace(/\?.*/, '')}`)))
  })
  return connection
}

/** One after the other: the next is sent when the one before is answered. */
async function medianOf(connection: WebSocket, count: number): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) times.push(await exchange(connection))
  return median(times)
}

function exchange(connection: WebSocket): Promise<number> {
  const id = randomUUID()
  const text = JSON.stringify({ id, type: 'ws.message', connection_id: 'bench', content: 'hello' })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const start = performance.now()
  const late = setTimeout(() => reject(new Error(`no answer to event ${id} on the WebSocket within 10 s`)), 10_000)
  const heard = ({ data }: MessageEvent) => {
    const ms = performance.now() - start
    const message = JSON.parse(String(data))
    // Ours acknowledges by id and tells what the scope logs, too; the bare one echoes.
    if (message.id === id) resolve(ms)
  }
  const closed = ({ code, reason }: CloseEvent) => reject(new Error(`the WebSocket was closed: ${code} ${reason}`))
  connection.addEventListener('message', heard)
  connection.addEventListener('close', closed)
  connection.send(text)
  return promise.finally(() => {
    clearTimeout(late)
    connection.removeEventListener('message', heard)
    connection.removeEventListener('close', closed)
  })
}
