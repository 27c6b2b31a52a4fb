import type { Env, QueueMessage } from '../env.ts'
import { logError, warn } from '../base/warn.ts'
import type { Event } from '../core/event.ts'
import { hideInEvent } from './parse-event.ts'
import { deploymentHider } from '../base/secrets.ts'
import { newBatchId, noteQueued } from '../store/queued.ts'
import { grouped, pack } from './pack.ts'
import { storeOf } from '../store/store.ts'

/** After this time without its outcome an event may have been lost by the queue. */
export const LATE_MS = 30_000
/** D1 is a second witness, not a gate: a request waits this long for it, and does without it where it is down. */
const DATABASE_MS = 500
const ARM_EVERY_MS = 20_000
const MOST_RECENT = 10_000

/**
 * `known`: the traces of the events that were sent before, by `scope id`, as far as D1 answered in time. `unsure`: the events that may
 * be lost, so that the sender must send them again.
 */
export type Enqueued = { known: Map<string, string>; unsure: ReadonlySet<Event> }

let armedAt = 0

/** The traces of events that this isolate sent lately, by `scope id`: D1's log has them a little later. */
let recent = new Map<string, string>()
let older = new Map<string, string>()

/**
 * The queue path. Durable before it is answered: the queue must take every event, and beside it D1 notes what is sent, so that the
 * sweep finds what the queue loses.
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
  const sentBefore = remember(events)
  const batches = grouped(pack(events)).map((group) => {
    const id = newBatchId(now)
    return { id, messages: group.map((message) => ({ ...message, batch: id })), events: group.flatMap((message) => message.events) }
  })
  const noted = noteQueued(storeOf(env), batches, now + LATE_MS).catch((error: unknown) => {
    warn({ message: 'failed to note queued events in D1; the queue alone has them', error })
    return null
  })
  context.waitUntil(noted)
  const [known, failed, armed] = await Promise.all([
    Promise.race([noted, scheduler.wait(DATABASE_MS).then(() => null)]),
    send(
      env,
      batches.map(({ messages }) => messages),
    ),
    arm(env, now),
  ])
  const unsure = armed ? failed : new Set(events)
  for (const { scope, id } of unsure) for (const sent of [recent, older]) sent.delete(`${scope} ${id}`)
  return {
    known: new Map([...sentBefore, ...(known ?? [])]),
    unsure: new Set(Array.from(unsure, (event) => originals.get(event) ?? event)),
  }
}

/** Sends each group by one call. Returns the events that the queue did not take, or may not have taken. */
export async function send(env: Env, groups: readonly QueueMessage[][]): Promise<Set<Event>> {
  return new Set((await Promise.all(groups.map((group) => sendBatch(env, group)))).flat())
}

async function sendBatch(env: Env, group: readonly QueueMessage[]): Promise<Event[]> {
  try {
    await env.EVENTS.sendBatch(group.map((body) => ({ body })))
    return []
  } catch (error) {
    const events = group.flatMap((message) => message.events)
    logError({ message: 'the queue did not take a batch of events', events: events.length, error })
    return events
  }
}

/** Returns the traces of those that this isolate sent before. */
function remember(events: readonly Event[]): Map<string, string> {
  const known = new Map<string, string>()
  for (const { scope, id } of events) {
    const trace = recent.get(`${scope} ${id}`) ?? older.get(`${scope} ${id}`)
    if (trace !== undefined) known.set(`${scope} ${id}`, trace)
  }
  // Of two equal ids in one request the first one's trace is kept.
  for (const { scope, id, meta } of events.toReversed()) {
    const key = `${scope} ${id}`
    recent.set(key, known.get(key) ?? meta.trace_id)
  }
  if (recent.size > MOST_RECENT) [older, recent] = [recent, new Map()]
  return known
}

/** Once in a while and before the answer, so that a sweep comes even if the process dies right after it. Returns whether one will come. */
async function arm(env: Env, now: number): Promise<boolean> {
  if (now - armedAt < ARM_EVERY_MS) return true
  try {
    await env.SWEEPER.getByName('sweeper').arm()
    armedAt = now
    return true
  } catch (error) {
    logError({ message: 'failed to arm the sweeper', error })
    return false
  }
}
