import type { Env } from '../env.ts'
import { warn } from '../base/warn.ts'
import { byteLength, isJsonFields } from '../base/json.ts'
import { repeatedAmong } from '../store/packs/find.ts'
import { mergePacks } from '../store/packs/merge.ts'
import type { FeatureAnswers } from '../store/packs/told.ts'
import { packTold } from '../store/packs/write.ts'
import type { PackedEvent } from '../store/packs/format.ts'
import { dropWhole, nameOf } from '../store/queued.ts'
import { isDoubted } from '../store/replicate.ts'
import type { ScopeReport } from '../store/scope-rows.ts'
import { bindingOf, storeOf } from '../store/store.ts'

/**
 * Ended events that are packed together with those that other scopes have, the answers of the
 * features of their scope, and its row if that has changed. `seq` is a text.
 */
type OutcomesMessage = { outcomes: (Omit<PackedEvent, 'seq'> & { seq: string })[]; told?: FeatureAnswers; row?: ScopeReport }

/** A scope sends rows to D1 instead of a larger message. */
const MOST_BYTES = 60_000
const RETRY_S = 30

/** As the text that a scope answers its consumer with. */
export function outcomesText(events: readonly PackedEvent[], told: FeatureAnswers, row?: ScopeReport): string {
  const outcomes = events.map(({ seq, ...event }) => ({ ...event, seq: String(seq) }))
  return JSON.stringify({ outcomes, told, ...(row && { row }) } satisfies OutcomesMessage)
}

const eventsOf = (outcomes: OutcomesMessage['outcomes']): PackedEvent[] => outcomes.map((event) => ({ ...event, seq: BigInt(event.seq) }))

/**
 * Packs what scopes have answered, with their rows, and drops the notes of `batches` that have
 * nothing else.
 */
export async function packAnswers(env: Env, answers: readonly string[], batches: readonly string[]): Promise<void> {
  const read = JSON.parse(`[${answers.join(',')}]`) as OutcomesMessage[]
  const told = read.flatMap((one) => (one.told ? [one.told] : []))
  await packAll(
    env,
    read.flatMap(({ outcomes }) => eventsOf(outcomes)),
    { told, batches, rows: read.flatMap(({ row }) => row ?? []) },
  )
}

/** Events of a delivery from which on it drops their notes. */
const LEAST_DROPPED = 16
type Beside = { told: readonly FeatureAnswers[]; batches?: readonly string[]; rows?: readonly ScopeReport[] }

async function packAll(env: Env, events: readonly PackedEvent[], { told, batches = [], rows = [] }: Beside): Promise<void> {
  const db = storeOf(env)
  const doubted = events.filter(isDoubted)
  const repeated = doubted.length === 0 ? null : await repeatedAmong(db, doubted)
  const once = repeated ? events.filter((event) => !repeated.has(nameOf(event))) : events
  const some = told.filter((one) => Object.keys(one).length > 0)
  const is_empty = once.length + some.length + rows.length === 0
  // The notes of fewer events are cheap to read, and left to the sweep.
  const notes = once.length < LEAST_DROPPED ? [] : dropWhole(db, batches, once)
  const crowded = is_empty ? null : await packTold(db, { events: once, told: some, rows }, notes)
  if (repeated)
    await giveBack(
      env,
      events.filter((event) => repeated.has(nameOf(event))),
    )
  if (crowded) await mergeNow(crowded)
}

const MERGE_NOW_MS = 1000
/** A run that has not ended by then was cut off with its request, and ends no more. */
const MERGE_ENDED_MS = 60_000
/**
 * Databases in which this process merges packs, each with the time until which: a second run would
 * find them taken.
 */
const merging = new WeakMap<D1Database, number>()

/** Merges before the next sweep, so that lists and look-ups find few small packs at any rate. */
async function mergeNow(db: D1Database): Promise<void> {
  const [binding, now] = [bindingOf(db), Date.now()]
  if ((merging.get(binding) ?? 0) > now) return
  merging.set(binding, now + MERGE_ENDED_MS)
  try {
    await mergePacks(db, now, MERGE_NOW_MS)
  } catch (error) {
    warn({ message: 'failed to merge packs; the sweep merges them', error })
  } finally {
    merging.delete(binding)
  }
}

/** Has scopes report these events, as rows. */
async function giveBack(env: Env, events: readonly PackedEvent[]): Promise<void> {
  const scopes = Map.groupBy(events, ({ scope }) => scope)
  await Promise.all(Array.from(scopes, ([scope, own]) => env.SCOPE.getByName(scope).unpacked(own.map(({ id }) => id))))
}

/** Has outcomes packed, with the answers of features. False if they are too long. */
export type SendOutcomes = (events: readonly PackedEvent[], told?: FeatureAnswers) => Promise<boolean>

/**
 * Returns the sender of outcomes of one scope that are few: to the queue, whose consumer
 * packs the outcomes of many scopes, or else to D1 as a small pack. A queue that may forget its
 * messages gets none: their scopes would not report them again.
 */
export function outcomesSender(env: Pick<Env, 'OUTCOMES' | 'REFLEX_QUEUE_NOTES'>, db: D1Database): SendOutcomes {
  const { OUTCOMES, REFLEX_QUEUE_NOTES } = env
  if (!OUTCOMES || REFLEX_QUEUE_NOTES !== 'off') {
    return async (events, told = {}) => {
      const crowded = await packTold(db, { events, told: Object.keys(told).length > 0 ? [told] : [] })
      if (crowded) await mergeNow(crowded)
      return true
    }
  }
  return async (events, told = {}) => {
    const text = outcomesText(events, told)
    if (byteLength(text) > MOST_BYTES) return false
    await OUTCOMES.send(JSON.parse(text) as OutcomesMessage)
    return true
  }
}

const TEXTS = ['id', 'scope', 'type', 'status', 'trace_id'] as const

function toldIn(body: unknown): FeatureAnswers[] {
  const told = isJsonFields(body) ? body['told'] : null
  return isJsonFields(told) ? [told] : []
}

/** The events of a message; null if they cannot be packed. */
export function outcomesIn(body: unknown): PackedEvent[] | null {
  if (!isJsonFields(body) || !Array.isArray(body['outcomes'])) return null
  const isWhole = (event: unknown): boolean =>
    isJsonFields(event) &&
    TEXTS.every((name) => typeof event[name] === 'string') &&
    typeof event['seq'] === 'string' &&
    /^\d{1,19}$/.test(event['seq']) &&
    Number.isSafeInteger(event['accepted_at']) &&
    isJsonFields(event['payload'])
  return body['outcomes'].every(isWhole) ? eventsOf((body as OutcomesMessage).outcomes) : null
}

/** From this attempt on, after five minutes, outcomes go back to their scopes. */
const LAST_ATTEMPT = 10

/**
 * Has the queue deliver a message again, or its scopes report the events: they try for as long as
 * D1 is away, and a queue does not.
 */
async function putOff({ message, events }: { message: Message; events: readonly PackedEvent[] | null }, env: Env): Promise<void> {
  if (message.attempts < LAST_ATTEMPT || events === null) return message.retry({ delaySeconds: RETRY_S })
  try {
    await giveBack(env, events)
    message.ack()
  } catch (error) {
    warn({ message: 'failed to give outcomes back to their scopes; will retry', id: message.id, error })
    message.retry({ delaySeconds: RETRY_S })
  }
}

/**
 * Packs the outcomes of many scopes. One that arrives twice has the same place in both packs. A
 * message that cannot be read holds no other: it becomes a dead letter.
 */
export async function consumeOutcomes(messages: readonly Message[], env: Env): Promise<void> {
  const read = messages.map((message) => ({ message, events: outcomesIn(message.body) }))
  try {
    const events = read.flatMap((one) => one.events ?? [])
    await packAll(env, events, { told: read.flatMap((one) => (one.events ? toldIn(one.message.body) : [])) })
    for (const one of read) if (one.events) one.message.ack()
  } catch (error) {
    warn({ message: 'failed to pack outcomes; the queue delivers them again', messages: read.length, error })
    await Promise.all(read.map((one) => putOff(one, env)))
    return
  }
  for (const { message } of read.filter(({ events }) => events === null)) {
    warn({ message: 'a message of outcomes cannot be read', id: message.id })
    message.retry({ delaySeconds: RETRY_S })
  }
}
