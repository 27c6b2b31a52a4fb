import type { Env, QueueMessage } from '../env.ts'
import { logError, warn } from '../base/warn.ts'
import type { Event } from '../core/event.ts'
import type { Clean } from '../base/secrets.ts'
import { newBatchId, noteQueued } from '../store/queued.ts'
import { grouped, pack } from './pack.ts'
import { QUICK_MS, storeOf } from '../store/store.ts'

/** An event without an outcome after this time may be lost. */
export const LATE_MS = 30_000
const ARM_EVERY_MS = 20_000
const MOST_RECENT = 10_000

/** `known`: traces of events sent before, by `scope id`. `unsure`: events that may be lost. */
export type Enqueued = { known: Map<string, string>; unsure: ReadonlySet<Event> }

let armedAt = 0

/** Traces of events that this isolate sent recently, by `scope id`: D1 receives them later. */
let recent = new Map<string, string>()
let older = new Map<string, string>()

/**
 * Sends events through the queue before the request is answered. D1 also records them, so that the
 * sweep finds lost ones.
 */
export async function enqueue(
  env: Env,
  context: Pick<ExecutionContext, 'waitUntil'>,
  events: readonly Clean<Event>[],
  now: number,
): Promise<Enqueued> {
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
    Promise.race([noted, scheduler.wait(QUICK_MS).then(() => null)]),
    send(
      env,
      batches.map(({ messages }) => messages),
    ),
    arm(env, now),
  ])
  const unsure: ReadonlySet<Event> = armed ? failed : new Set(events)
  for (const { scope, id } of unsure) for (const sent of [recent, older]) sent.delete(`${scope} ${id}`)
  return { known: new Map([...sentBefore, ...(known ?? [])]), unsure }
}

/** Sends each group in one call. Returns the events that the queue may not have accepted. */
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

function remember(events: readonly Event[]): Map<string, string> {
  const known = new Map<string, string>()
  for (const { scope, id } of events) {
    const trace = recent.get(`${scope} ${id}`) ?? older.get(`${scope} ${id}`)
    if (trace !== undefined) known.set(`${scope} ${id}`, trace)
  }
  // Reversed, so that the first of two equal ids wins.
  for (const { scope, id, meta } of events.toReversed()) {
    const key = `${scope} ${id}`
    recent.set(key, known.get(key) ?? meta.trace_id)
  }
  if (recent.size > MOST_RECENT) [older, recent] = [recent, new Map()]
  return known
}

/** Arms the sweeper before the response, in case the process dies. True if it is armed. */
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
