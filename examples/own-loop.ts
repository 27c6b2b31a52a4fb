// Your own loop, in your own process: it claims a scope's events, decides, and settles each.
// It needs Node 24 and no dependencies.
//
//   REFLEX_KEY=… node examples/own-loop.ts [--once]
//
// The key needs the roles operator, to set the scope's consumer, and publisher, to claim.
// REFLEX_URL and REFLEX_SCOPE have defaults.

import { setTimeout as sleep } from 'node:timers/promises'

type Event = { id: string; type: string; source: string; timestamp: string; content?: string }
type Delivery = { event: Event; ack_token: string; attempts: number }

const { REFLEX_URL = 'http://localhost:8787', REFLEX_SCOPE = 'own/loop', REFLEX_KEY } = process.env
const once = process.argv.includes('--once')
const IDLE_MS = 1000
/**
 * Longer than any decision takes: an event that is not settled by then goes to the next consumer.
 */
const LEASE_S = 60

if (!REFLEX_KEY) {
  console.error('Set REFLEX_KEY to a key of your deployment.')
  process.exit(2)
}

const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())

/** The memory that decisions are made from: the events since the last action. */
const seen: Event[] = []

// From now on the scope runs no turns of its own: its events wait to be claimed.
await call('PATCH', '', { consumer: 'pull' })
console.log(`Claiming the events of ${REFLEX_SCOPE} at ${REFLEX_URL}${once ? ', once' : ''}.`)

while (!stop.signal.aborted) {
  try {
    const claimed = await round()
    if (claimed > 0) continue
    if (once) break
  } catch (error) {
    if (once) throw error
    // Claimed events that were not settled return when their lease expires.
    console.error(`${String(error)}; trying again`)
  }
  await sleep(IDLE_MS, undefined, { signal: stop.signal }).catch(() => {})
}

/** Claims events, settles each, and returns their number. */
async function round(): Promise<number> {
  const { deliveries } = await call<{ deliveries: Delivery[] }>('POST', '/claim', { limit: 10, lease_s: LEASE_S })
  for (const { event, ack_token, attempts } of deliveries) {
    const decision = attempt(event)
    // A returned event is delivered again after a pause; after three attempts it goes to the dead
    // letters.
    if (decision.ok) await call('POST', '/ack', { ack_tokens: [ack_token] })
    else await call('POST', '/nack', { ack_token, error: decision.reason })
    console.log(`${event.id} ${event.type}: ${decision.ok ? decision.what : `given back at attempt ${attempts}, ${decision.reason}`}`)
  }
  return deliveries.length
}

function attempt(event: Event): { ok: true; what: string } | { ok: false; reason: string } {
  try {
    return { ok: true, what: decide(event) }
  } catch (error) {
    return { ok: false, reason: String(error) }
  }
}

/** Your decision: this one acts on every third event. Throw if no decision is possible now. */
function decide(event: Event): string {
  if (event.content === 'fail') throw new Error('this event asked to fail')
  seen.push(event)
  if (seen.length < 3) return `remembered, ${seen.length} of 3`
  return `acted on ${seen.splice(0).length} events`
}

async function call<Answer>(method: string, path: string, body: unknown): Promise<Answer> {
  const response = await fetch(`${REFLEX_URL}/v1/scopes/${encodeURIComponent(REFLEX_SCOPE)}${path}`, {
    method,
    headers: { authorization: `Bearer ${REFLEX_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method} ${path || 'settings'} was answered ${response.status}: ${await response.text()}`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the API keeps its contract
  return (await response.json()) as Answer
}
