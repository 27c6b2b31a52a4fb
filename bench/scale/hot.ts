import { randomUUID } from 'node:crypto'
import { ended, until, type ReflexClient } from '../clients.ts'
import { median } from '../figure.ts'
import { batches, concurrently, rate } from '../load.ts'
import { line, type ScaleLine, type ScaleOptions } from './place.ts'

const EVENTS = 20_000
const SENDERS = 16
const RUNS = 3
/** The scope that decides gets one order of so many. */
const LARGE_OF = 100
const REGION = 'eu'
const DECIDES = `regions/${REGION}`

const PARTITIONS = 16
/** As `partitionOf` of the template `partitions`, whose imports need a built package. */
const partitionOf = (customer: number): string => `orders/${REGION}:${customer % PARTITIONS}`

/** The highest rate of one scope, and of 16 partitions that forward to one. */
export async function hotScope({ open, events = EVENTS, progress }: ScaleOptions): Promise<ScaleLine[]> {
  const { reflex, stop } = await open('hot', { script: 'bench/scale/partitions-worker.ts' })
  try {
    const one: number[] = []
    const all: number[] = []
    for (let run = 0; run <= RUNS; run += 1) {
      progress(`run ${run} of ${RUNS}`)
      const hot = await toOutcomes(reflex, events, () => `orders/${REGION}:0`)
      const parted = await toOutcomes(reflex, events, partitionOf)
      // The first run does not count.
      if (run > 0) one.push(hot)
      if (run > 0) all.push(parted)
    }
    return [
      line(`one scope, ${events} events by ${SENDERS} senders of 100, to the last outcome`, median(one), 'events/s'),
      line('the same in 16 partitions, which forward one event of 100 to a scope that decides', median(all), 'events/s'),
    ]
  } finally {
    await stop()
  }
}

/** Events a second, until the scope that decides has decided. */
async function toOutcomes(reflex: ReflexClient, events: number, scopeOf: (customer: number) => string): Promise<number> {
  const orders = Array.from({ length: events }, (_, index) => {
    const customer = index % 997
    const total = index % LARGE_OF === 0 ? 2000 : 20
    return { id: randomUUID(), type: 'shop.order', scope: scopeOf(customer), order: `o-${index}`, customer: `c-${customer}`, total }
  })
  const due = Map.groupBy(orders, ({ scope }) => scope)
  const expected = new Map(Array.from(due, ([scope, some]) => [scope, some.length]))
  expected.set(DECIDES, Math.ceil(events / LARGE_OF))
  const counted = async (scope: string) => ended(await reflex.state(scope))
  const before = new Map(await Promise.all(Array.from(expected.keys(), async (scope) => [scope, await counted(scope)] as const)))
  const requests = Array.from(due, ([scope, some]) => batches(some, 100).map((batch) => ({ scope, body: JSON.stringify(batch) })))
  // Turns of all partitions, as their senders would be.
  const turns = Array.from({ length: Math.max(...requests.map(({ length }) => length)) }, (_, nth) =>
    requests.flatMap((of) => of[nth] ?? []),
  )
  return rate(events, async () => {
    await concurrently(turns.flat(), ({ scope, body }) => reflex.accept(scope, body), SENDERS)
    for (const [scope, count] of expected)
      await until(async () => (await counted(scope)) >= (before.get(scope) ?? 0) + count, {
        what: `the events of ${scope}`,
        timeout_ms: 600_000,
      })
  })
}
