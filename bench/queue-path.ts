import { batches, loginLines } from './events.ts'
import type { Bench, Figure } from './figure.ts'
import { concurrently, rate, until } from './http.ts'
import { ended } from './reflex-client.ts'
import { alternate } from './samples.ts'

const EVENTS = 5000
/** Enough that neither side waits for its senders. */
const CLIENTS = 16
const SCOPES = ['ssh/queue-1', 'ssh/queue-2', 'ssh/queue-3', 'ssh/queue-4', 'ssh/queue-5']
const scopeOf = (index: number): string => SCOPES[index % SCOPES.length] ?? ''

/** design.md's comparison: what a queue and an object do with nothing between them. */
export const queuePath: Figure = {
  name: 'queue',
  what: 'POST /v1/events to outcomes, against one event a message, each inserted into its object',
  unit: 'events/s',
  target: { at_least: 1.5 },
  measure: (bench) => compared(bench, 'each'),
}

/** A harder one: the bare loop also groups a batch by object, which is one of the two reasons why ours is fast. */
export const queueGrouped: Figure = {
  name: 'queue-grouped',
  what: 'the same, against a bare loop that inserts a batch’s events in one call an object',
  unit: 'events/s',
  target: { at_least: 1 },
  measure: (bench) => compared(bench, 'grouped'),
}

const compared = ({ runs, progress, ...bench }: Bench, loop: 'each' | 'grouped') =>
  alternate({ runs, progress, ours: () => ours(bench), bare: () => bare(bench, loop) })

async function ours({ reflex }: Pick<Bench, 'reflex'>): Promise<number> {
  const bodies = batches(loginLines(EVENTS, scopeOf), 100).map((batch) => JSON.stringify(batch))
  const before = await totals(async (scope) => ended(await reflex.state(scope)))
  const events = await rate(EVENTS, async () => {
    await concurrently(bodies, reflex.publish, CLIENTS)
    await allArrived(before, async (scope) => ended(await reflex.state(scope)))
  })
  await reflex.quiet(...SCOPES)
  return events
}

async function bare({ bare }: Pick<Bench, 'bare'>, loop: 'each' | 'grouped'): Promise<number> {
  const name = (scope: string) => scope.replace('/', '-')
  const bodies = batches(
    loginLines(EVENTS, (index) => name(scopeOf(index))),
    100,
  ).map((batch) => JSON.stringify(batch))
  const before = await totals((scope) => bare.count(name(scope)))
  return rate(EVENTS, async () => {
    await concurrently(bodies, bare[loop], CLIENTS)
    await allArrived(before, (scope) => bare.count(name(scope)))
  })
}

async function totals(count: (scope: string) => Promise<number>): Promise<Map<string, number>> {
  return new Map(await Promise.all(SCOPES.map(async (scope) => [scope, await count(scope)] as const)))
}

async function allArrived(before: Map<string, number>, count: (scope: string) => Promise<number>): Promise<void> {
  for (const [scope, start] of before) {
    await until(async () => (await count(scope)) >= start + EVENTS / SCOPES.length, { what: `all events in ${scope}` })
  }
}
