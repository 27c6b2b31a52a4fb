import type { Env, QueueMessage } from '../env.ts'
import type { Event } from '../core/event.ts'
import { hideInEvent } from './hide-in-event.ts'
import { deploymentHider } from '../contract/secrets.ts'
import { markQueued } from '../store/events.ts'
import { pack } from './pack.ts'
import { logError, warn } from '../base/warn.ts'

type Body = { body: QueueMessage }
/** `known`: the traces of the events that D1 has from before, by `scope id`, as far as it answered in time. `unsure` what may be lost, so that it must be sent again. */
export type Enqueued = { known: Map<string, string>; unsure: ReadonlySet<Event> }

const MOST_MESSAGES = 100
/** What one sendBatch may carry, with room for its envelope. */
const MOST_BYTES = 240_000
/** D1 is a second witness, not a gate: it is waited for so long, and may be down. */
const DATABASE_MS = 500
const ARM_EVERY_MS = 20_000

let armedAt = 0

/**
 * The queue path. Durable before it is answered: the queue must take every event, and beside it D1 notes them as `queued`, so that the sweep finds what the
 * queue loses.
 */
export async function enqueue(
  env: Env,
  context: Pick<ExecutionContext, 'waitUntil'>,
  accepted: readonly Event[],
  now: number,
): Promise<Enqueued> {
  const hider = deploymentHider(env)
  const originals = new Map(accepted.map((event) => [hideInEvent(event, hider), event]))
  const events = Array.from(originals.keys())
  const noted = markQueued(env.DB, events, now).catch((error: unknown) => {
    warn({ message: 'D1 did not note queued events, the queue alone has them', error })
    return null
  })
  context.waitUntil(noted)
  const [known, unsure, armed] = await Promise.all([
    Promise.race([noted, scheduler.wait(DATABASE_MS).then(() => null)]),
    send(env, events),
    arm(env, now),
  ])
  const lost = armed ? unsure : events
  return { known: known ?? new Map(), unsure: new Set(Array.from(lost, (event) => originals.get(event) ?? event)) }
}

/** Returns the events that the queue did not take, or may not have taken: what a call did that failed is not known. */
export async function send(env: Env, events: readonly Event[]): Promise<Set<Event>> {
  const batches: Body[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { message, bytes: size } of pack(events)) {
    if (bytes + size > MOST_BYTES || (batches.at(-1)?.length ?? 0) >= MOST_MESSAGES) {
      batches.push([])
      bytes = 0
    }
    batches.at(-1)?.push({ body: message })
    bytes += size
  }
  return new Set((await Promise.all(batches.map((batch) => sendBatch(env, batch)))).flat())
}

async function sendBatch(env: Env, batch: readonly Body[]): Promise<Event[]> {
  try {
    await env.EVENTS.sendBatch(batch)
    return []
  } catch (error) {
    const events = batch.flatMap(({ body }) => body.events)
    logError({ message: 'the queue did not take a batch of events', events: events.length, error })
    return events
  }
}

/** Once in a while and before the answer, so that a sweep comes even if the process dies right after it. Returns whether one will come. */
async function arm(env: Env, now: number): Promise<boolean> {
  if (now - armedAt < ARM_EVERY_MS) return true
  try {
    await env.SWEEPER.getByName('sweeper').arm()
    armedAt = now
    return true
  } catch (error) {
    logError({ message: 'the sweeper could not be armed', error })
    return false
  }
}
