import type { ReflexClient } from '../clients.ts'
import type { Figure, Side } from '../figure.ts'
import { batches, concurrently, loginLines } from '../load.ts'

const PENDING = 100_000
const EVENTS = 5000
const FULL = 'ssh/inbox-full'

/** Two sides of Reflex itself: a full inbox against an empty one. */
export const fullInbox: Figure = {
  name: 'inbox',
  what: `accepting 1,000 events into an inbox of ${PENDING} pending events (fewer with --quick), against an empty one`,
  unit: 'ms',
  target: { at_most: 2 },
  worst: 4,
  async ours(reflex, { progress, count }) {
    progress(`filling an inbox with ${count(PENDING)} events`)
    await reflex.configure(FULL, { consumer: 'pull' })
    await accept(reflex, FULL, { events: count(PENDING), size: 1000 })
    await reflex.quiet(FULL)
    return { measure: () => timed(reflex, FULL, count(EVENTS)) }
  },
  bare: async ({ reflex, count }) => emptyInbox(reflex, count(EVENTS)),
}

function emptyInbox(reflex: ReflexClient, events: number): Side {
  let run = 0
  return {
    async measure() {
      run += 1
      const scope = `ssh/inbox-empty-${run}`
      await reflex.configure(scope, { consumer: 'pull' })
      return timed(reflex, scope, events)
    },
  }
}

/** Milliseconds for a thousand events. */
async function timed(reflex: ReflexClient, scope: string, events: number): Promise<number> {
  const elapsed = await accept(reflex, scope, { events, size: 100 })
  await reflex.quiet(scope)
  return (elapsed / events) * 1000
}

async function accept(reflex: ReflexClient, scope: string, { events, size }: { events: number; size: number }): Promise<number> {
  const lines = loginLines(events, () => scope)
  const bodies = batches(lines, size).map((batch) => JSON.stringify(batch))
  const start = performance.now()
  await concurrently(bodies, (body) => reflex.accept(scope, body))
  return performance.now() - start
}
