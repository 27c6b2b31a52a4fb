import type { Env } from '../bindings.ts'
import type { Event } from '../core/event.ts'
import { markQueued } from '../store/events.ts'
import { pack } from './message.ts'

const MOST_MESSAGES = 100
/** What one sendBatch may carry, with room for its envelope. */
const MOST_BYTES = 240_000
/** D1 is a second witness, not a gate: it is waited for so long, and may be down. */
const DATABASE_MS = 500
const ARM_EVERY_MS = 20_000

let armedAt = 0

/**
 * The queue path. Durable before it is answered: the queue must take every event, and beside it D1 notes them as `queued`, so that the sweep finds what the
 * queue loses. Returns the keys (`scope id`) that D1 knows from before, as far as it answered in time.
 */
export async function enqueue(
  env: Env,
  context: Pick<ExecutionContext, 'waitUntil'>,
  events: readonly Event[],
  now: number,
): Promise<Set<string>> {
  const noted = markQueued(env.DB, events, now).catch((error: unknown) => {
    console.warn(JSON.stringify({ message: 'D1 did not note queued events, the queue alone has them', error: String(error) }))
    return null
  })
  context.waitUntil(noted)
  const [known] = await Promise.all([Promise.race([noted, scheduler.wait(DATABASE_MS).then(() => null)]), send(env, events), arm(env, now)])
  return known ?? new Set()
}

export async function send(env: Env, events: readonly Event[]): Promise<void> {
  const batches: { body: ReturnType<typeof pack>[number]['message'] }[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { message, bytes: size } of pack(events)) {
    if (bytes + size > MOST_BYTES || (batches.at(-1)?.length ?? 0) >= MOST_MESSAGES) {
      batches.push([])
      bytes = 0
    }
    batches.at(-1)?.push({ body: message })
    bytes += size
  }
  await Promise.all(batches.map((batch) => env.EVENTS.sendBatch(batch)))
}

/** Once in a while and before the answer, so that a sweep comes even if the process dies right after it. */
async function arm(env: Env, now: number): Promise<void> {
  if (now - armedAt < ARM_EVERY_MS) return
  await env.SWEEPER.getByName('sweeper').arm()
  armedAt = now
}
