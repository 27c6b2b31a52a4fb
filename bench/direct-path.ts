import { batches, loginLines } from './events.ts'
import type { Bench, Figure } from './figure.ts'
import { concurrently, rate, until } from './http.ts'
import { ended } from './reflex-client.ts'
import { alternate } from './samples.ts'

const EVENTS = 5000
const BATCH = 100
const SCOPES = ['ssh/direct-1', 'ssh/direct-2', 'ssh/direct-3', 'ssh/direct-4', 'ssh/direct-5']
const scopeOf = (batch: number): string => SCOPES[batch % SCOPES.length] ?? ''

export const directPath: Figure = {
  name: 'direct',
  what: 'POST /v1/scopes/:scope/events to outcomes, against a bare insert into D1',
  unit: 'events/s',
  target: { at_least: 0.3 },
  measure: ({ runs, progress, ...bench }) => alternate({ runs, progress, ours: () => ours(bench), bare: () => bare(bench) }),
}

type Batch = { scope: string; body: string }
const makeBatches = (): Batch[] =>
  batches(
    loginLines(EVENTS, (index) => scopeOf(Math.floor(index / BATCH))),
    BATCH,
  ).map((batch, index) => ({ scope: scopeOf(index), body: JSON.stringify(batch) }))

async function ours({ reflex }: Pick<Bench, 'reflex'>): Promise<number> {
  const all = makeBatches()
  const before = new Map(await Promise.all(SCOPES.map(async (scope) => [scope, ended(await reflex.state(scope))] as const)))
  const events = await rate(EVENTS, async () => {
    await concurrently(all, ({ scope, body }) => reflex.accept(scope, body))
    for (const [scope, start] of before) {
      await until(async () => ended(await reflex.state(scope)) >= start + EVENTS / SCOPES.length, { what: `all events in ${scope}` })
    }
  })
  await reflex.quiet(...SCOPES)
  return events
}

async function bare({ bare }: Pick<Bench, 'bare'>): Promise<number> {
  const all = makeBatches()
  return rate(EVENTS, () => concurrently(all, ({ body }) => bare.insert(body)))
}
