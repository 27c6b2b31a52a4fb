import { bareClient, send, until } from '../clients.ts'
import { median } from '../figure.ts'
import { concurrently, loginLines } from '../load.ts'
import { computedOn, line, throughScopes, type Place, type ScaleLine, type ScaleOptions } from './place.ts'

const EVENTS = 1000
const SENDERS = 4
const RUNS = 5
/** The scopes of the events, and the most ms of CPU of each event. */
const CASES = [
  { scopes: 1, warm: true, at_most: 4, of: 'of one scope' },
  { scopes: 100, warm: true, at_most: 5, of: 'of 100 scopes' },
  { scopes: EVENTS, warm: false, at_most: 8, of: 'of a new scope' },
] as const

/** Lone events whose way to D1 is timed, and its most seconds. */
const TOLD = 20
const MOST_S = 15

/** CPU of workerd for an event that comes alone, until D1 knows how it ended; and how soon. */
export async function loneEvents(options: ScaleOptions): Promise<ScaleLine[]> {
  return [...(await bareEvents(options)), ...(await reflexEvents(options))]
}

/** The same processes without Reflex: an object that keeps each event, and a queue before it. */
async function bareEvents({ open, events = EVENTS, progress }: ScaleOptions): Promise<ScaleLine[]> {
  const place = await open('lone-bare', { config: 'bench/bare/wrangler.toml' })
  try {
    progress('bare objects')
    const bare = bareClient(place.reflex.url)
    const scopeOf = (index: number) => `bare-${index % 100}`
    const lines = () => loginLines(events, scopeOf)
    const works = () => concurrently(lines(), async (line) => bare.work(line.scope, JSON.stringify(line)), SENDERS)
    const queued = async (nameOf: (index: number) => string, each = 1) => {
      const last = nameOf(events - 1)
      const due = (await bare.count(last)) + each
      await concurrently(loginLines(events, nameOf), async (line) => bare.each(JSON.stringify([line])), SENDERS)
      await until(async () => (await bare.count(last)) >= due, { pause_ms: 500, what: 'the bare queue', timeout_ms: 60_000 })
    }
    let round = 0
    const inNew = () => {
      round += 1
      return queued((index) => `bare-new-${round}-${index}`)
    }
    const inserts = () => concurrently(lines(), async (line) => bare.insert(JSON.stringify([line])), SENDERS)
    const measured: [string, () => Promise<void>][] = [
      ['a bare object that takes an event by HTTP, of 100', works],
      ['a bare queue and object, of 100', () => queued(scopeOf, Math.floor(events / 100))],
      ['a bare queue and new object', inNew],
      ['a bare insertion of an event into D1', inserts],
    ]
    const found: ScaleLine[] = []
    for (const [what, work] of measured) {
      await work()
      found.push(line(what, (await medianOf(() => computing(place, work))) / events, 'ms'))
    }
    return found
  } finally {
    await place.stop()
  }
}

async function reflexEvents({ open, events = EVENTS, progress }: ScaleOptions): Promise<ScaleLine[]> {
  // As a deployment, whose queue forgets nothing.
  const place = await open('lone', { vars: { REFLEX_QUEUE_NOTES: 'off' } })
  try {
    const { url, headers } = place.reflex
    const floor = async () => {
      const asked = Array.from({ length: events }, () => `${url}/health`)
      await concurrently(asked, (path) => send(path, { headers }), SENDERS)
    }
    await floor()
    const idle_ms = await medianOf(() => computing(place, floor))
    const lines = [line('a request that does nothing (GET /health)', idle_ms / events, 'ms')]
    for (const { scopes, warm, at_most, of } of CASES) {
      progress(of)
      let round = 0
      const names = (index: number) => `ssh/lone-${scopes}-${warm ? '' : `${round}-`}${index % scopes}`
      if (warm) await sent(place, Math.max(scopes, events / 10), names)
      const ms = await medianOf(() => {
        round += 1
        return computing(place, () => sent(place, events, names))
      })
      lines.push(line(`a lone event ${of}, by the queue`, ms / events, 'ms', { at_most }))
    }
    progress('the way to D1')
    lines.push(line(`until D1 lists a lone event, at most of ${TOLD}`, await secondsToList(place), 's', { at_most: MOST_S }))
    return lines
  } finally {
    await place.stop()
  }
}

/** The longest of some lone events, each with its outcome. */
async function secondsToList({ reflex: { url, headers, publish } }: Place): Promise<number> {
  let longest = 0
  for (let index = 0; index < TOLD; index += 1) {
    const events = loginLines(1, () => `ssh/told-${index}`)
    const start = performance.now()
    await publish(JSON.stringify(events))
    const listed = async () => {
      const { items } = JSON.parse(await send(`${url}/v1/events?limit=10`, { headers })) as {
        items: { id: string; status: string }[]
      }
      return items.some(({ id, status }) => id === events[0]?.id && ['completed', 'ignored'].includes(status))
    }
    await until(listed, { pause_ms: 100, what: 'D1 to list an event', timeout_ms: 60_000 })
    longest = Math.max(longest, performance.now() - start)
  }
  return longest / 1000
}

/** Runs differ by a quarter. */
async function medianOf(measure: () => Promise<number>): Promise<number> {
  const found: number[] = []
  while (found.length < RUNS) found.push(await measure())
  return median(found)
}

async function computing({ folder }: Place, work: () => Promise<void>): Promise<number> {
  const before = await computedOn(folder)
  await work()
  return (await computedOn(folder)) - before
}

/** Each event in a request of its own. Few questions follow, since they compute, too. */
async function sent({ reflex }: Place, count: number, names: (index: number) => string): Promise<void> {
  const lines = loginLines(count, names)
  const last = [...new Set(lines.map(({ scope }) => scope))].slice(-3)
  const bodies = lines.map((event) => JSON.stringify([event]))
  const work = await throughScopes(reflex, { lines, last, pause_ms: 500 }, () => concurrently(bodies, reflex.publish, SENDERS))
  await work()
  await until(async () => (await reflex.inboxes()).open === 0, { pause_ms: 1000, what: 'D1 to know all outcomes', timeout_ms: 600_000 })
}
