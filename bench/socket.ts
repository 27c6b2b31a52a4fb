import { randomUUID } from 'node:crypto'
import { connect, exchange } from './exchange.ts'
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

/** Ours acknowledges by id and tells what the scope logs, too; the bare one echoes. */
export async function medianOf(connection: WebSocket, count: number): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID()
    times.push(await exchange(connection, { id, answers: (message) => message.id === id }))
  }
  return median(times)
}
