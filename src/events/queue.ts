import type { Env, QueueMessage } from '../env.ts'
import { logError, warn } from '../base/warn.ts'
import { type Event, scopeName } from '../core/event.ts'
import { type Clean, deploymentHider } from '../base/secrets.ts'
import { newBatchId, noteQueued, postponeBatches } from '../store/queued.ts'
import { QUICK_MS, storeOf } from '../store/store.ts'
import { byteLength } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { backoff, pauses } from '../base/backoff.ts'
import { consumeOutcomes, isOutcomes } from './outcomes.ts'
import { addDeadLetters, deadLettersOf } from '../store/dead-letters.ts'

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
 * sweep finds lost ones, unless the deployment relies on its queue alone.
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
  const noted = noteQueued(storeOf(env), batches, env.REFLEX_QUEUE_NOTES === 'off' ? null : now + LATE_MS).catch((error: unknown) => {
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

/** As long as a source. */
const MOST_SENDER = 256

/** Checks only what the consumers rely on: the events were validated when they were accepted. */
export function readMessage(body: unknown): QueueMessage | null {
  if (!isFields(body) || !Array.isArray(body['events']) || body['events'].length === 0) return null
  const { scope, events, sender } = body
  if (!scopeName.safeParse(scope).success) return null
  const isOfScope = (event: unknown): boolean =>
    isFields(event) && event['scope'] === scope && typeof event['id'] === 'string' && typeof event['type'] === 'string'
  if (!events.every(isOfScope)) return null
  const message = body as QueueMessage
  if (sender === undefined) return message
  if (typeof sender !== 'string' || sender === '' || sender.length > MOST_SENDER) return null
  return { ...message, events: message.events.map((event) => ({ ...event, meta: { sender, ...event.meta } })) }
}

const isFields = (value: unknown): value is { [name: string]: unknown } => typeof value === 'object' && value !== null

export type PackedMessage = { message: QueueMessage; bytes: number }

/** Packs the events of each scope into messages: a queue is billed, and limited, by the message. */
export function pack(events: readonly Event[], batch?: string): PackedMessage[] {
  return Array.from(Map.groupBy(events, ({ scope }) => scope)).flatMap(([scope, group]) =>
    packScope({ scope, ...(batch && { batch }) }, group),
  )
}

function packScope(head: Omit<QueueMessage, 'events'>, group: readonly Event[]): PackedMessage[] {
  const packed: PackedMessage[] = []
  for (const event of group) {
    const bytes = byteLength(JSON.stringify(event)) + 1
    const last = packed.at(-1)
    if (last && last.bytes + bytes <= limits.queue_message_bytes) {
      last.message.events.push(event)
      last.bytes += bytes
    } else {
      packed.push({ message: { ...head, events: [event] }, bytes })
    }
  }
  return packed
}

const MOST_MESSAGES = 100
/** The limit of one `sendBatch`, less its envelope. */
const MOST_BYTES = 240_000

export function grouped(packed: readonly PackedMessage[]): QueueMessage[][] {
  const groups: QueueMessage[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { message, bytes: size } of packed) {
    if (bytes + size > MOST_BYTES || (groups.at(-1)?.length ?? 0) >= MOST_MESSAGES) {
      groups.push([])
      bytes = 0
    }
    groups.at(-1)?.push(message)
    bytes += size
  }
  return groups
}

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
  const outcomes = batch.messages.filter(({ body }) => isOutcomes(body))
  if (outcomes.length > 0) await consumeOutcomes(outcomes, env)
  const events = batch.messages.filter(({ body }) => !isOutcomes(body))
  await Promise.all(
    events.map((message) => bury(env, message, 'not delivered in any attempt: its scope was unreachable, or its inbox was full')),
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
    return (await env.SCOPE.getByName(scope).accept([...events], 'queue')).ok ? 'accepted' : 'full'
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
