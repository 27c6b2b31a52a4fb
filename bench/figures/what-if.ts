import type { RangeProgress, RangeReport } from '../../src/features/replay/contract/replay.ts'
import { ended, until, type ReflexClient } from '../clients.ts'
import type { Figure } from '../figure.ts'
import { batches, chatMessage, concurrently } from '../load.ts'

const SCOPE = 'bench/what-if'
const EVENTS = 10_000
const SINCE = '2020-01-01T00:00:00Z'
const REFLEX = 'bench-short-answers'

/** Answers nine of ten messages, and leaves the others to turns. */
const code = (answer: string) => `function reflex(context) {
  return context.event.content.endsWith('9') ? null : { action_type: 'reply', content: '${answer}' }
}`

/** A reflex that answers otherwise: each of its decisions changes. */
export const whatIf: Figure = {
  name: 'what-if',
  what: 'a what-if over 10,000 recorded events with another reflex, with progress',
  unit: 'ms',
  target: { at_most: 30_000 },
  async ours(reflex, { count, progress }) {
    const events = count(EVENTS)
    progress(`recording ${events} events`)
    await record(reflex, events)
    return {
      async measure() {
        const began = performance.now()
        const lines = await reflex.replayRange(SCOPE, {
          since: SINCE,
          mode: 'what_if',
          changes: { reflex_code: { [REFLEX]: code('other words') } },
        })
        const took = performance.now() - began
        demandChanges(lines, events)
        return (took / events) * EVENTS
      },
    }
  },
}

async function record(reflex: ReflexClient, count: number): Promise<void> {
  await reflex.register({ id: REFLEX, code: code('recorded words') })
  await reflex.configure(SCOPE, { reflexes: [{ id: REFLEX, rate: 60_000 }] })
  const messages = Array.from({ length: count }, (_, index) => chatMessage(`message ${index}`))
  await concurrently(batches(messages, 100), (batch) => reflex.accept(SCOPE, JSON.stringify(batch)))
  await until(async () => ended(await reflex.state(SCOPE)) >= count, { pause_ms: 100, what: 'the outcomes of the events' })
  await reflex.quiet(SCOPE)
}

/** A few decisions may be unknown if the log is read in parts. */
const MOST_UNKNOWN = 0.01

function demandChanges(lines: readonly { progress?: RangeProgress; report?: RangeReport }[], events: number): void {
  const report = lines.at(-1)?.report
  const shown = lines.filter(({ progress }) => progress !== undefined).length
  const whole = report?.next_cursor === null && report.events === events && report.unknown <= events * MOST_UNKNOWN
  if (!whole || report.effects.appear < events * (0.9 - MOST_UNKNOWN) || shown < 2)
    throw new Error(`the what-if is not the expected one, after ${shown} lines of progress: ${JSON.stringify(report).slice(0, 2000)}`)
}
