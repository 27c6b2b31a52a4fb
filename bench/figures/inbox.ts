import type { ReflexClient } from '../clients.ts'
import type { Figure, Side } from '../figure.ts'
import { batches, concurrently, loginLines } from '../load.ts'

const PENDING = 100_000
const EVENTS = 5000
const FULL = 'ssh/inbox-full'

/** Two sides of Reflex itself: a full inbox against an empty one. */
export const fullInbox: Figure = {
  name: 'inbox',
  what: `accepting 1,000 events into an inbox of ${PENDING} pending events, against an empty one`,
  unit: 'ms',
  target: { at_most: 2 },
  async ours(reflex, { progress }) {
    progress(`filling an inbox with ${PENDING} events`)
    await reflex.configure(FULL, { consumer: 'pull' })
    await accept(reflex, FULL, { events: PENDING, size: 1000 })
    await reflex.quiet(FULL)
    return { measure: () => timed(reflex, FULL) }
  },
  bare: async ({ reflex }) => emptyInbox(reflex),
}

function emptyInbox(reflex: ReflexClient): Side {
  let run = 0
  return {
    async measure() {
      run += 1
      const scope = `ssh/inbox-empty-${run}`
      await reflex.configure(scope, { consumer: 'pull' })
      return timed(reflex, scope)
    },
  }
}

/** Milliseconds for a thousand events. */
async function timed(reflex: ReflexClient, scope: string): Promise<number> {
  const elapsed = await accept(reflex, scope, { events: EVENTS, size: 100 })
  await reflex.quiet(scope)
  return (elapsed / EVENTS) * 1000
}

async function accept(reflex: ReflexClient, scope: string, { events, size }: { events: number; size: number }): Promise<number> {
  const lines = loginLines(events, () => scope)
  const bodies = batches(lines, size).map((batch) => JSON.stringify(batch))
  const start = performance.now()
  await concurrently(bodies, (body) => reflex.accept(scope, body))
  return performance.now() - start
}
