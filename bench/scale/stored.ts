import { send, until } from '../clients.ts'
import { median } from '../figure.ts'
import { batches, concurrently, happeningNow, loginLines } from '../load.ts'
import { line, type ScaleLine, type ScaleOptions } from './place.ts'

const FEW = 500
const MANY = 500_000
const RESTARTS = 5
const NAME = 'stored'
const scopes = { few: 'ssh/stored-few', many: 'ssh/stored-many' }

/** Waking a scope that has 500,000 ended events, against one that has 500. */
export async function muchStored({ open, events = MANY, progress }: ScaleOptions): Promise<ScaleLine[]> {
  const filling = await open(NAME)
  for (const [scope, count] of [
    [scopes.few, FEW],
    [scopes.many, events],
  ] as const) {
    progress(`${count} events for ${scope}`)
    const lines = loginLines(count, () => scope)
    await concurrently(batches(lines, 1000), (some) => filling.reflex.accept(scope, happeningNow(some)))
    const isDone = async () => {
      const { counters, outbox } = await filling.reflex.state(scope)
      return counters.completed + counters.ignored >= count && outbox.waiting === 0
    }
    await until(isDone, { pause_ms: 1000, what: scope, timeout_ms: 1_800_000 })
  }
  await filling.stop()
  const times = { few: [] as number[], many: [] as number[] }
  const next = { few: [] as number[], many: [] as number[] }
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    progress(`restart ${restart + 1} of ${RESTARTS}`)
    const { reflex, stop } = await open(NAME)
    // The first request of a server loads its code.
    await reflex.state('ssh/stored-other')
    for (const which of restart % 2 === 0 ? (['few', 'many'] as const) : (['many', 'few'] as const)) {
      times[which].push(
        await timed(() => send(`${reflex.url}/v1/scopes/${encodeURIComponent(scopes[which])}`, { headers: reflex.headers })),
      )
      next[which].push(await timed(() => reflex.outcome(scopes[which], JSON.stringify(loginLines(1, () => scopes[which])))))
    }
    await stop()
  }
  const both = (of: typeof times) => [median(of.many), median(of.few)] as const
  return [['waking', both(times)] as const, ['the next event', both(next)] as const].map(([what, [many, few]]) =>
    line(`${what}: ${many.toFixed(1)} ms with ${events} stored events, against ${few.toFixed(1)} ms with ${FEW}`, many / few, '×', {
      at_most: 1.5,
    }),
  )
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}
