import { ended, type ReflexClient } from '../clients.ts'
import type { Bench, Figure, Side } from '../figure.ts'
import { batches, concurrently, loginLines, rateToOutcomes } from '../load.ts'

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
  worst: 0.6,
  ours: async (reflex, { count }) => toOutcomes(reflex, count(EVENTS), CLIENTS),
  bare: async (bench) => bareSide(bench, 'each'),
}

/** A harder comparison: grouping a batch by object explains half of the queue path's speed. */
export const queueGrouped: Figure = {
  name: 'queue-grouped',
  what: 'the same, against a bare loop that inserts the events of a batch in one call an object',
  unit: 'events/s',
  target: { at_least: 1 },
  worst: 0.18,
  ours: async (reflex, { count }) => toOutcomes(reflex, count(EVENTS), CLIENTS),
  bare: async (bench) => bareSide(bench, 'grouped'),
}

export const queueRate: Figure = {
  name: 'queue-rate',
  what: 'the same with four senders of 100 events',
  unit: 'events/s',
  target: { at_least: 6000 },
  ours: async (reflex, { count }) => toOutcomes(reflex, count(EVENTS), 4),
}

export function toOutcomes(reflex: ReflexClient, count: number, senders: number): Side {
  return {
    async measure() {
      const bodies = batches(loginLines(count, scopeOf), 100).map((batch) => JSON.stringify(batch))
      const counted = async (scope: string) => ended(await reflex.state(scope))
      const events = await rateToOutcomes(count, { scopes: SCOPES, counted, send: () => concurrently(bodies, reflex.publish, senders) })
      await reflex.quiet(...SCOPES)
      return events
    },
  }
}

function bareSide({ bare, ...bench }: Bench, loop: 'each' | 'grouped'): Side {
  const count = bench.count(EVENTS)
  return {
    async measure() {
      const bodies = batches(
        loginLines(count, (index) => bareName(scopeOf(index))),
        100,
      ).map((batch) => JSON.stringify(batch))
      const counted = (scope: string) => bare.count(bareName(scope))
      return rateToOutcomes(count, { scopes: SCOPES, counted, send: () => concurrently(bodies, bare[loop], CLIENTS) })
    },
  }
}
