import { send, until, type ReflexClient } from '../clients.ts'
import { median } from '../figure.ts'
import { batches, concurrently, happeningNow, loginLines, rate } from '../load.ts'
import { bytesOn, computedOn, line, memoryOf, throughScopes, type Place, type ScaleLine, type ScaleOptions } from './place.ts'

const FULL = { scopes: 20_000, events: 1_000_000 }
const SMALL = { scopes: 200, events: 10_000 }
/** Events of a scope in a request. */
const TOGETHER = 50
const SENDERS = 4
const TENTHS = 10
/** Events of each tenth that are looked up. */
const LOOKED_UP = 10
const OBJECTS = /\/do\/.*Scope.*\.sqlite/

const scopeAt = (index: number): string => `ssh/scale-${index}`

/** A million events in 20,000 scopes: what grows with them. */
export async function manyScopes({ open, scopes = FULL.scopes, events = FULL.events, progress }: ScaleOptions): Promise<ScaleLine[]> {
  const small = await open('small')
  await filled(small, { scopes: Math.min(SMALL.scopes, scopes), events: Math.min(SMALL.events, events), progress: () => {} })
  const large = await open('large')
  try {
    const { rates, computed, memory, ids } = await filled(large, { scopes, events, progress })
    progress('reading lists')
    const times = await timesOfLists([small.reflex, large.reflex])
    const found = await timesOfLookUps(large.reflex, ids)
    const disk = await bytesOn(large.folder, OBJECTS)
    const [first = Number.NaN, last = Number.NaN] = [rates[0], rates.at(-1)]
    const [at_first = Number.NaN, at_last = Number.NaN] = [computed[0], computed.at(-1)]
    return [
      line(`events a second to the last outcome, first tenth of ${events} events in ${scopes} scopes`, first, 'events/s'),
      line('the last tenth against the first', last / first, '×', { at_least: 0.9 }),
      line('CPU of workerd for an event of the first tenth', at_first, 'ms'),
      line('CPU of an event of the last tenth against the first', at_last / at_first, '×'),
      line('memory of workerd at most', memory / 1e9, 'GB', { at_most: 1.5 }),
      line('disk of a scope', disk / scopes / 1000, 'kB', { at_most: 100 }),
      ...times.map(({ path, ms: [few = Number.NaN, many = Number.NaN] }) =>
        line(`GET ${path}: ${many.toFixed(1)} ms, against ${few.toFixed(1)} ms of ${SMALL.scopes} scopes`, many / few, '×', {
          at_most: 1.5,
        }),
      ),
      line('an event by its id without its scope, median of all times', found.by_id, 'ms', { at_most: 100 }),
      line('a trace by its id, with its tree, median of all times', found.by_trace, 'ms', { at_most: 100 }),
    ]
  } finally {
    await small.stop()
    await large.stop()
  }
}

type Filled = Pick<Required<ScaleOptions>, 'progress'> & { scopes: number; events: number }

/**
 * The rate and the ms of CPU for an event of each tenth, the most memory after one, and ids of some
 * events.
 */
async function filled({ reflex, folder }: Place, { scopes, events, progress }: Filled) {
  const rates: number[] = []
  const computed: number[] = []
  const ids: string[] = []
  let memory = 0
  for (let tenth = 0; tenth < TENTHS; tenth += 1) {
    const from = (tenth * events) / TENTHS
    const scopeOf = (index: number) => scopeAt(Math.floor((from + index) / TOGETHER) % scopes)
    const lines = loginLines(events / TENTHS, scopeOf)
    const sent = batches(lines, 2 * TOGETHER)
    const every = Math.ceil(lines.length / LOOKED_UP)
    ids.push(...lines.flatMap(({ id }, index) => (index % every === 0 ? [id] : [])))
    const last = [...new Set(lines.slice(-20 * TOGETHER).map(({ scope }) => scope))]
    const before = await computedOn(folder)
    rates.push(
      await rate(
        lines.length,
        await throughScopes(reflex, { lines, last }, () => concurrently(sent, (some) => reflex.publish(happeningNow(some)), SENDERS)),
      ),
    )
    computed.push(((await computedOn(folder)) - before) / lines.length)
    memory = Math.max(memory, await memoryOf(folder))
    const said = [
      `${Math.round(rates.at(-1) ?? 0)} events/s`,
      `${computed.at(-1)?.toFixed(2)} ms of CPU`,
      `${(memory / 1e6).toFixed(0)} MB`,
    ]
    progress(`tenth ${tenth + 1}: ${said.join(', ')}`)
  }
  const known = async () => {
    const inboxes = await reflex.inboxes()
    return inboxes.open === 0 && inboxes.scopes >= Math.min(scopes, events / TOGETHER)
  }
  await until(known, { pause_ms: 1000, what: 'D1 to know all scopes', timeout_ms: 900_000 })
  return { rates, computed, memory, ids }
}

/** The lists, and the requests of the overview. */
const PATHS = [
  '/health/detailed',
  '/v1/stats/summary?metrics=events.accepted,events.by_reflex,turns.p50_ms&bucket=minute',
  '/v1/stats/summary?metrics=reflexes.saved_cost_usd,reflexes.most_missed&bucket=day',
  '/v1/scopes?limit=100',
  '/v1/events?limit=100',
  `/v1/events?limit=100&scope=${encodeURIComponent(scopeAt(7))}`,
  '/v1/events?limit=100&status=dead_lettered',
  '/v1/traces?limit=100',
  '/v1/dlq?limit=100',
]
const REPEATED = 11

/** The median time of each list, on all servers in turns. */
async function timesOfLists(servers: readonly ReflexClient[]): Promise<{ path: string; ms: number[] }[]> {
  const found: { path: string; ms: number[] }[] = []
  for (const path of PATHS) {
    const samples = servers.map((): number[] => [])
    for (let repetition = 0; repetition <= REPEATED; repetition += 1)
      for (const [index, { url, headers }] of servers.entries()) {
        const start = performance.now()
        await send(`${url}${path}`, { headers })
        if (repetition > 0) samples[index]?.push(performance.now() - start)
      }
    found.push({ path, ms: samples.map(median) })
  }
  return found
}

/** The median times to find an event by its id, and a trace, in D1 and then in its scope. */
async function timesOfLookUps({ url, headers }: ReflexClient, ids: readonly string[]): Promise<{ by_id: number; by_trace: number }> {
  const by_id: number[] = []
  const by_trace: number[] = []
  const timed = async (path: string, times: number[]) => {
    const start = performance.now()
    const text = await send(`${url}${path}`, { headers })
    times.push(performance.now() - start)
    return text
  }
  for (const id of ids) {
    const { trace_id } = JSON.parse(await timed(`/v1/events/${id}`, by_id)) as { trace_id: string }
    await timed(`/v1/traces/${trace_id}`, by_trace)
  }
  return { by_id: median(by_id), by_trace: median(by_trace) }
}
