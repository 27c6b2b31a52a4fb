import type { Env, QueueMessage } from '../env.ts'
import { logError, warn } from '../base/warn.ts'
import type { Event } from '../core/event.ts'
import { addDeadLetters, deadLettersOf } from '../store/dead-letters.ts'
import { deploymentHider } from '../base/secrets.ts'
import { postponeBatches } from '../store/queued.ts'
import { readMessage } from './pack.ts'
import { LATE_MS } from './enqueue.ts'
import { storeOf } from '../store/store.ts'

type Parsed = { message: Message; body: QueueMessage }
/** A message that goes back to the queue for some time. */
type Returned = Parsed & { delay_s: number }
const RETRY_S = 2
const FULL_S = 30

/**
 * The consumer of the queue of events: one call for each scope of the batch, then each message acknowledged or retried by itself. It
 * never throws: a throw would retry messages that were delivered.
 */
export async function consumeEvents(batch: MessageBatch, env: Env): Promise<void> {
  const parsed = batch.messages.map((message) => ({ message, body: readMessage(message.body) }))
  const readable = parsed.filter((one): one is Parsed => one.body !== null)
  const [returned] = await Promise.all([
    Promise.all(
      Array.from(
        Map.groupBy(readable, ({ body }) => body.scope),
        ([scope, group]) => deliver(env, scope, group),
      ),
    ),
    ...parsed
      .filter(({ body }) => body === null)
      .map(({ message }) => bury(env, message, 'the message could not be read: it is not {scope, events}')),
  ])
  for (const { message, delay_s } of returned.flat()) message.retry({ delaySeconds: delay_s })
  await postpone(env, returned.flat())
}

/** The queue has these: the sweep does not send them again before it has delivered them again. */
async function postpone(env: Env, returned: readonly Returned[]): Promise<void> {
  const ids = new Set(returned.flatMap(({ body }) => body.batch ?? []))
  const longest = Math.max(...returned.map(({ delay_s }) => delay_s))
  try {
    await postponeBatches(storeOf(env), Array.from(ids), Date.now() + longest * 1000 + LATE_MS)
  } catch (error) {
    warn({ message: 'failed to postpone the sweep of retried events; it may send them twice', error })
  }
}

/** Messages that could not be delivered in all their attempts end here, in D1, where an operator finds them. */
export async function consumeDeadLetters(batch: MessageBatch, env: Env): Promise<void> {
  await Promise.all(
    batch.messages.map((message) =>
      bury(env, message, 'not delivered in all attempts: its scope could not be reached, or its inbox was full'),
    ),
  )
}

/** The first time in one call. A message that comes again is delivered alone, so that one which cannot be taken holds up no other. */
async function deliver(env: Env, scope: string, group: readonly Parsed[]): Promise<Returned[]> {
  const [again, fresh] = [group.filter(({ message }) => message.attempts > 1), group.filter(({ message }) => message.attempts <= 1)]
  const returned = fresh.length > 0 ? await deliverTogether(env, scope, fresh) : []
  for (const one of again) returned.push(...(await deliverAlone(env, scope, one)))
  return returned
}

async function deliverTogether(env: Env, scope: string, group: readonly Parsed[]): Promise<Returned[]> {
  const taken = await accept(
    env,
    scope,
    group.flatMap(({ body }) => body.events),
  )
  if (taken !== 'full' || group.length === 1) return group.flatMap((one) => settle(one, taken))
  // Together they do not fit; one by one some of them may.
  const returned: Returned[] = []
  for (const one of group) returned.push(...(await deliverTogether(env, scope, [one])))
  return returned
}

/** Its events are split until what fails is alone: the inbox has the others then, and drops their copies when the message comes again. */
async function deliverAlone(env: Env, scope: string, one: Parsed): Promise<Returned[]> {
  let calls = MOST_CALLS
  const take = async (events: readonly Event[]): Promise<Taken> => {
    if (calls-- <= 0) return 'failed'
    const taken = await accept(env, scope, events)
    if (taken !== 'failed' || events.length === 1) return taken
    const half = Math.ceil(events.length / 2)
    const parts = [await take(events.slice(0, half)), await take(events.slice(half))]
    return parts.find((part) => part !== 'accepted') ?? 'accepted'
  }
  return settle(one, await take(one.body.events))
}

/** Enough to find two events among a thousand; a scope that cannot be reached at all is not asked more often. */
const MOST_CALLS = 40

type Taken = 'accepted' | 'full' | 'failed'

async function accept(env: Env, scope: string, events: readonly Event[]): Promise<Taken> {
  try {
    return (await env.SCOPE.getByName(scope).accept([...events], 'queue')).ok ? 'accepted' : 'full'
  } catch (error) {
    warn({ message: 'a scope did not accept events of the queue; they will be retried', scope, events: events.length, error })
    return 'failed'
  }
}

/** Acknowledges a message that was accepted, or gives it back to be retried. */
function settle(one: Parsed, taken: Taken): Returned[] {
  if (taken === 'accepted') {
    one.message.ack()
    return []
  }
  return [{ ...one, delay_s: taken === 'full' ? FULL_S : RETRY_S * 2 ** Math.min(one.message.attempts, 6) }]
}

async function bury(env: Env, message: Message, error: string): Promise<void> {
  try {
    const hider = deploymentHider(env)
    const letters = deadLettersOf(readMessage(message.body)?.events ?? [], message, error)
    await addDeadLetters(
      storeOf(env),
      letters.map((letter) => ({ ...letter, payload: hider.text(letter.payload) })),
    )
    message.ack()
  } catch (failure) {
    logError({ message: 'failed to write a dead letter; will retry', id: message.id, error: failure })
    message.retry({ delaySeconds: 30 })
  }
}
