import { batches, loginLines } from './events.ts'
import type { Figure } from './figure.ts'
import { concurrently } from './http.ts'
import { alternate } from './samples.ts'
import type { ReflexClient } from './reflex-client.ts'

const PENDING = 100_000
const EVENTS = 5000
const FULL = 'ssh/inbox-full'

export const fullInbox: Figure = {
  name: 'inbox',
  what: `accepting into an inbox of ${PENDING} pending events, against an empty one`,
  unit: 'ms',
  target: { at_most: 2 },
  async measure({ reflex, runs, progress }) {
    progress(`filling an inbox with ${PENDING} events`)
    await reflex.configure(FULL, { consumer: 'pull' })
    await accept(reflex, FULL, { events: PENDING, size: 1000 })
    await reflex.quiet(FULL)
    let run = 0
    const empty = async () => {
      run += 1
      const scope = `ssh/inbox-empty-${run}`
      await reflex.configure(scope, { consumer: 'pull' })
      return timed(reflex, scope)
    }
    return alternate({ runs, progress, ours: () => timed(reflex, FULL), bare: empty })
  },
}

/** Milliseconds for a thousand events. */
async function timed(reflex: ReflexClient, scope: string): Promise<number> {
  const elapsed = await accept(reflex, scope, { events: EVENTS, size: 100 })
  await reflex.quiet(scope)
  return (elapsed / EVENTS) * 1000
}

async function accept(reflex: ReflexClient, scope: string, { events, size }: { events: number; size: number }): Promise<number> {
  const bodies = batches(
    loginLines(events, () => scope),
    size,
  ).map((batch) => JSON.stringify(batch))
  const start = performance.now()
  await concurrently(bodies, (body) => reflex.accept(scope, body))
  return performance.now() - start
}
