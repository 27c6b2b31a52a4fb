import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { ReplayReport } from '../../src/features/replay/contract/replay.ts'
import type { ReflexClient } from '../clients.ts'
import { median, type Figure } from '../figure.ts'

const SCOPE = 'bench/replays'
const WARM_UP = 5

/** The time to read the file, decide again and compare, beside the time of a rejected request. */
export const replayOfTurn: Figure = {
  name: 'replay',
  what: 'a pinned replay of a turn with a model call, as a file, beside its request',
  unit: 'ms',
  target: { at_most: 20 },
  async ours(reflex, { count }) {
    await reflex.configure(SCOPE, { instructions: 'You answer in one sentence.' })
    const file = await recorded(reflex)
    return {
      async measure() {
        const [replays, requests]: [number[], number[]] = [[], []]
        for (let run = 0; run < count(100) + WARM_UP; run += 1) {
          const began = performance.now()
          const text = await reflex.replay(file)
          const replayed = performance.now()
          await reflex.replay(file.slice(0, -1)).catch(() => {})
          replays.push(replayed - began)
          requests.push(performance.now() - replayed)
          const report = JSON.parse(text) as ReplayReport
          if (!report.equivalent || report.unknown.length > 0) throw new Error(`the replay differs: ${text}`)
        }
        return Math.max(0, median(replays.slice(WARM_UP)) - median(requests.slice(WARM_UP)))
      },
    }
  },
}

async function recorded(reflex: ReflexClient): Promise<string> {
  const message = { type: 'ws.message', connection_id: 'bench', content: 'a message' }
  const [event] = await reflex.outcome(SCOPE, JSON.stringify(message))
  if (event?.status !== 'completed') throw new Error(`a turn did not complete its event: ${JSON.stringify(event)}`)
  const { items } = await reflex.log(SCOPE, 0)
  const turn = items.find((entry: LogEntry) => entry.kind === 'turn-ended')
  return reflex.exported(SCOPE, turn?.trace_id ?? '')
}
