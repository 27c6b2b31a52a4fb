import { backoff, pauses } from '../base/backoff.ts'
import type { Env, QueueMessage } from '../env.ts'
import { logError, warn } from '../base/warn.ts'
import type { Event } from '../core/event.ts'
import { addDeadLetters, deadLettersOf } from '../store/dead-letters.ts'
import { deploymentHider } from '../base/secrets.ts'
import { postponeBatches } from '../store/queued.ts'
import { cleanEvent } from './parse-event.ts'
import { readMessage } from './pack.ts'
import { LATE_MS } from './enqueue.ts'
import { storeOf } from '../store/store.ts'

type Parsed = { message: Message; body: QueueMessage }
/** A message to retry after a delay. */
type Returned = Parsed & { delay_s: number }
const FULL_S = 30

/**
 * Delivers a batch with one call per scope, then acknowledges or retries each message. Never
 * throws.
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
    ...parsed.filter(({ body }) => body === null).map(({ message }) => bury(env, message, 'malformed message: expected {scope, events}')),
  ])
  for (const { message, delay_s } of returned.flat()) message.retry({ delaySeconds: delay_s })
  await postpone(env, returned.flat())
}

/** Keeps the sweep from resending messages that the queue will redeliver. */
async function postpone(env: Env, returned: readonly Returned[]): Promise<void> {
  const ids = new Set(returned.flatMap(({ body }) => body.batch ?? []))
  const longest = Math.max(...returned.map(({ delay_s }) => delay_s))
  try {
    await postponeBatches(storeOf(env), Array.from(ids), Date.now() + longest * 1000 + LATE_MS)
  } catch (error) {
    warn({ message: 'failed to postpone the sweep of retried events; it may send them twice', error })
  }
}

/** Stores messages that failed all delivery attempts as dead letters in D1. */
export async function consumeDeadLetters(batch: MessageBatch, env: Env): Promise<void> {
  await Promise.all(
    batch.messages.map((message) => bury(env, message, 'not delivered in any attempt: its scope was unreachable, or its inbox was full')),
  )
}

/** Delivers a scope's messages in one call; retried ones alone, so that they block no others. */
async function deliver(env: Env, scope: string, group: readonly Parsed[]): Promise<Returned[]> {
  const again = group.filter(({ message }) => message.attempts > 1)
  const fresh = group.filter(({ message }) => message.attempts <= 1)
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
  // Too large together: deliver them one by one.
  const returned: Returned[] = []
  for (const one of group) returned.push(...(await deliverTogether(env, scope, [one])))
  return returned
}

/** Splits the message until the failing events are alone. Redelivered duplicates are dropped. */
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

/** Finds two failing events among a thousand, and bounds the calls to an unreachable scope. */
const MOST_CALLS = 40

type Taken = 'accepted' | 'full' | 'failed'

async function accept(env: Env, scope: string, events: readonly Event[]): Promise<Taken> {
  try {
    // Any Worker may write to the queue, and a secret may be newer than the message.
    const hider = deploymentHider(env)
    const clean = events.map((event) => cleanEvent(event, hider))
    return (await env.SCOPE.getByName(scope).accept(clean, 'queue')).ok ? 'accepted' : 'full'
  } catch (error) {
    warn({ message: 'a scope did not accept queued events; will retry', scope, events: events.length, error })
    return 'failed'
  }
}

function settle(one: Parsed, taken: Taken): Returned[] {
  if (taken === 'accepted') {
    one.message.ack()
    return []
  }
  return [{ ...one, delay_s: taken === 'full' ? FULL_S : backoff(pauses.queue, one.message.attempts) / 1000 }]
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
