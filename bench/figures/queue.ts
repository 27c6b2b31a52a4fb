import { ended, until, type ReflexClient } from '../clients.ts'
import type { Bench, Figure, Side } from '../figure.ts'
import { batches, concurrently, loginLines, rate, rateToOutcomes } from '../load.ts'

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
  what: 'POST /v1/events to outcomes, against a bare loop that inserts the events of a batch in one call an object',
  unit: 'events/s',
  target: { at_least: 1 },
  worst: 0.18,
  ours: async (reflex, { count }) => toOutcomes(reflex, count(EVENTS), CLIENTS),
  bare: async (bench) => bareSide(bench, 'grouped'),
}

export const queueRate: Figure = {
  name: 'queue-rate',
  what: 'POST /v1/events to outcomes, four senders of 100 events over five scopes',
  unit: 'events/s',
  target: { at_least: 6000 },
  ours: async (reflex, { count }) => toOutcomes(reflex, count(EVENTS), 4),
}

const LONE_SCOPES = 1000
const SENDERS = 50
/** The queue delivers in order: these have their outcomes last. */
const LAST = 20

/** Scopes that have had an event before. */
export const queueLone: Figure = {
  name: 'queue-lone',
  what: 'a lone event in each of 1,000 scopes, by 50 senders, to the last outcome, against one insert an object',
  unit: 'events/s',
  target: { at_least: 0.2 },
  ...loneFigure('warm'),
}

export const queueLoneNew: Figure = {
  name: 'queue-lone-new',
  what: 'a lone event in each of 1,000 new scopes, by 50 senders, to the last outcome, against one insert in a new object',
  unit: 'events/s',
  target: { at_least: 0.1 },
  ...loneFigure('new'),
}

function loneFigure(scopes: 'warm' | 'new'): Pick<Figure, 'ours' | 'bare'> {
  return {
    ours: async (reflex, { count }) => {
      const counted = async (scope: string) => ended(await reflex.state(scope))
      return loneEvents(count(LONE_SCOPES), { name: `ssh/lone-${scopes}`, scopes, counted, send: (body) => reflex.publish(body) })
    },
    bare: async ({ bare, count }) => {
      const counted = (scope: string) => bare.count(scope)
      return loneEvents(count(LONE_SCOPES), { name: `ssh-lone-${scopes}`, scopes, counted, send: (body) => bare.each(body) })
    },
  }
}

type Lone = { name: string; scopes: 'warm' | 'new'; counted: (scope: string) => Promise<number>; send: (body: string) => Promise<unknown> }

function loneEvents(count: number, { name, scopes, counted, send }: Lone): Side {
  let rounds = 0
  const round = async () => {
    const prefix = scopes === 'new' ? `${name}-${rounds}` : name
    const lines = loginLines(count, (index) => `${prefix}-${index}`)
    rounds += 1
    const due = scopes === 'new' ? 1 : rounds
    const names = lines.map(({ scope }) => scope)
    const all = (some: readonly string[]) =>
      concurrently(
        some,
        (scope) => until(async () => (await counted(scope)) >= due, { what: `the event of ${scope}`, timeout_ms: 120_000 }),
        LAST,
      )
    const events = await rate(count, async () => {
      await concurrently(
        lines.map((line) => JSON.stringify([line])),
        send,
        SENDERS,
      )
      await all(names.slice(-LAST))
    })
    await all(names)
    return events
  }
  return { measure: round }
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
