import { randomUUID } from 'node:crypto'
import { connect, exchange } from './exchange.ts'
import type { Figure } from './figure.ts'
import { alternate, median } from './samples.ts'
import { medianOf } from './socket.ts'

const SCOPE = 'bench/reflex'
const REFLEX = 'bench-reply'
const code = `function reflex(context) {
  return { action_type: 'reply', content: 'heard ' + context.event.content }
}`

export const reflexSocket: Figure = {
  name: 'reflex-socket',
  what: "one WebSocket, event in to a reflex's action out, against insert and echo",
  unit: 'ms',
  target: { at_most: 2 },
  async measure({ reflex, bare, runs, progress }) {
    await reflex.register({ id: REFLEX, code })
    await reflex.configure(SCOPE, { reflexes: [{ id: REFLEX, rate: 60_000 }] })
    const [ours, echo] = [await connect(await reflex.socketUrl(SCOPE)), await connect(bare.socketUrl('reflex'))]
    try {
      return await alternate({ runs, progress, ours: () => medianOfReplies(ours, 500), bare: () => medianOf(echo, 500) })
    } finally {
      ours.close()
      echo.close()
      await reflex.quiet(SCOPE)
    }
  },
}

/** Until the reflex's answer is heard: the ack says only that the event was taken. */
async function medianOfReplies(connection: WebSocket, count: number): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) {
    const id = randomUUID()
    times.push(await exchange(connection, { id, answers: ({ type, event_id }) => type === 'delta' && event_id === id }))
  }
  return median(times)
}
