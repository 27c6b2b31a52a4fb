import { ended, until, type ReflexClient } from '../clients.ts'
import type { Bench, Figure, Side } from '../figure.ts'
import { batches, concurrently, loginLines, rate } from '../load.ts'

const EVENTS = 5000
/** Enough that neither side waits for its senders. */
const CLIENTS = 16
const SCOPES = ['ssh/queue-1', 'ssh/queue-2', 'ssh/queue-3', 'ssh/queue-4', 'ssh/queue-5']
const scopeOf = (index: number): string => SCOPES[index % SCOPES.length] ?? ''
const bareName = (scope: string): string => scope.replace('/', '-')

export const queuePath: Figure = {
  name: 'queue',
  what: 'POST /v1/events to outcomes, against one event a message, each inserted into its object',
  unit: 'events/s',
  target: { at_least: 1.5 },
  ours: async (reflex) => ours(reflex, CLIENTS),
  bare: async ({ bare }) => bareSide(bare, 'each'),
}

/** A harder comparison: grouping a batch by object explains half of the queue path's speed. */
export const queueGrouped: Figure = {
  name: 'queue-grouped',
  what: 'the same, against a bare loop that inserts the events of a batch in one call an object',
  unit: 'events/s',
  target: { at_least: 1 },
  ours: async (reflex) => ours(reflex, CLIENTS),
  bare: async ({ bare }) => bareSide(bare, 'grouped'),
}

export const queueRate: Figure = {
  name: 'queue-rate',
  what: 'the same with four senders of 100 events',
  unit: 'events/s',
  target: { at_least: 6000 },
  ours: async (reflex) => ours(reflex, 4),
}

function ours(reflex: ReflexClient, senders: number): Side {
  return {
    async measure() {
      const bodies = batches(loginLines(EVENTS, scopeOf), 100).map((batch) => JSON.stringify(batch))
      const count = async (scope: string) => ended(await reflex.state(scope))
      const before = await totals(count)
      const events = await rate(EVENTS, async () => {
        await concurrently(bodies, reflex.publish, senders)
        await allArrived(before, count)
      })
      await reflex.quiet(...SCOPES)
      return events
    },
  }
}

function bareSide(bare: Bench['bare'], loop: 'each' | 'grouped'): Side {
  return {
    async measure() {
      const events = loginLines(EVENTS, (index) => bareName(scopeOf(index)))
      const bodies = batches(events, 100).map((batch) => JSON.stringify(batch))
      const count = (scope: string) => bare.count(bareName(scope))
      const before = await totals(count)
      return rate(EVENTS, async () => {
        await concurrently(bodies, bare[loop], CLIENTS)
        await allArrived(before, count)
      })
    },
  }
}

async function totals(count: (scope: string) => Promise<number>): Promise<Map<string, number>> {
  return new Map(await Promise.all(SCOPES.map(async (scope) => [scope, await count(scope)] as const)))
}

async function allArrived(before: Map<string, number>, count: (scope: string) => Promise<number>): Promise<void> {
  for (const [scope, start] of before) {
    await until(async () => (await count(scope)) >= start + EVENTS / SCOPES.length, { what: `all events in ${scope}` })
  }
}
