import type { Span } from '../../src/contract/reports/trace.ts'
import { median, type Figure } from '../figure.ts'
import { batches, chatMessage } from '../load.ts'
import { replyByReflex } from './socket.ts'

const SPANS = 1000
/** An event, its reflex and the action. */
const EVENTS = 340
const SCOPE = 'bench-trace'
const REPETITIONS = 5

/** Only Reflex: the target is for the value. */
export const longTrace: Figure = {
  name: 'trace',
  what: 'GET /v1/traces/:trace_id of 1,000 spans',
  unit: 'ms',
  target: { at_most: 100 },
  async ours(reflex) {
    await replyByReflex(reflex, SCOPE)
    const trace_id = crypto.randomUUID().replaceAll('-', '')
    const traceparent = `00-${trace_id}-00f067aa0ba902b7-01`
    const events = Array.from({ length: EVENTS }, () => ({ ...chatMessage(), traceparent }))
    for (const batch of batches(events, 100)) await reflex.accept(SCOPE, JSON.stringify(batch))
    await reflex.quiet(SCOPE)
    const spans = spansIn((await reflex.trace(trace_id)).root)
    if (spans < SPANS) throw new Error(`the trace has ${spans} spans`)
    return {
      async measure() {
        const times: number[] = []
        for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
          const start = performance.now()
          await reflex.trace(trace_id)
          times.push(performance.now() - start)
        }
        return median(times)
      },
    }
  },
}

const spansIn = ({ children }: Span): number => 1 + children.reduce((sum, child) => sum + spansIn(child), 0)
