import type { Env, QueueMessage } from '../env.ts'
import { logError, warn } from '../base/warn.ts'
import { type Event, scopeName } from '../core/event.ts'
import { type Clean, deploymentHider } from '../base/secrets.ts'
import { newBatchId, noteQueued, postponeBatches } from '../store/queued.ts'
import { QUICK_MS, storeOf } from '../store/store.ts'
import { byteLength } from '../base/json.ts'
import { TooLate, withDeadline } from '../base/deadline.ts'
import { inTurns } from '../base/in-turns.ts'
import { limits } from '../base/limits.ts'
import { backoff, pauses } from '../base/backoff.ts'
import { consumeOutcomes, outcomesIn, packAnswers } from './outcomes.ts'
import { addDeadLetters, deadLettersOf, type DeadLetterRow } from '../store/dead-letters.ts'
import { completed, type RefusedEvent } from './foreign-events.ts'

/** An event without an outcome after this time may be lost. */
export const LATE_MS = 30_000
const ARM_EVERY_MS = 20_000
const MOST_RECENT = 10_000

/** `known`: traces of events sent before, by `scope id`. `unsure`: events that may be lost. */
type Enqueued = { known: Map<string, string>; unsure: ReadonlySet<Event> }

let armedAt = 0

/** Traces of events that this isolate sent recently, by `scope id`: D1 receives them later. */
let recent = new Map<string, string>()
let older = new Map<string, string>()

/** More events are sent at once: their messages are full. */
const MOST_SHARING = 99
/** A send that takes longer may have ended with its request: others do not wait for it. */
const STUCK_MS = 2000
const UNANSWERED_MS = 10_000

type Sent = { known: ReadonlyMap<string, string>; failed: ReadonlySet<Event> }
const notSent = (events: readonly Event[]): Sent => ({ known: new Map(), failed: new Set(events) })
type Sending = { env: Env; context: Pick<ExecutionContext, 'waitUntil'>; now: number }
/** `begins`: tells the request that sends it. `joined`: tell the requests that share it. */
type Group = { events: Clean<Event>[]; begins: () => void; joined: ((sent: Sent) => void)[] }
/** The groups that wait for the one in flight, which has begun at `since`. */
type Lane = { is_sending: boolean; since: number; waiting: Group[] }
const lanes = new WeakMap<Env, Lane>()

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
  const before = remember(events)
  const [{ known, failed }, armed] = await Promise.all([
    Promise.race([shareSend({ env, context, now }, events), scheduler.wait(UNANSWERED_MS).then(() => notSent(events))]),
    arm(env, now),
  ])
  const unsure: ReadonlySet<Event> = armed ? new Set(events.filter((event) => failed.has(event))) : new Set(events)
  for (const { scope, id } of unsure) for (const sent of [recent, older]) sent.delete(`${scope} ${id}`)
  const own = events.flatMap(({ scope, id }) => {
    const trace = known.get(`${scope} ${id}`)
    return trace === undefined ? [] : [[`${scope} ${id}`, trace] as const]
  })
  return { known: new Map([...before, ...own]), unsure }
}

/**
 * Few events of requests that arrive during a send share the next: a message, and a note in D1.
 * Each request waits for a promise of its own and sends by itself: what one awaits of another ends
 * with that one.
 */
function shareSend(sending: Sending, events: readonly Clean<Event>[]): Promise<Sent> {
  const { env, context, now } = sending
  if (events.length > MOST_SHARING) return sendNow(sending, events)
  const known = lanes.get(env)
  const lane: Lane = known && now - known.since < STUCK_MS ? known : { is_sending: false, since: now, waiting: [] }
  lanes.set(env, lane)
  const next = lane.waiting.at(-1)
  if (next && next.events.length <= MOST_SHARING) {
    next.events.push(...events)
    return new Promise((resolve) => next.joined.push(resolve))
  }
  const sent = sendInTurn(lane, [...events], sending)
  // It serves other requests, too, although the client of this one may leave.
  context.waitUntil(sent)
  return sent
}

async function sendInTurn(lane: Lane, events: Clean<Event>[], sending: Sending): Promise<Sent> {
  const joined: Group['joined'] = []
  if (lane.is_sending) await new Promise<void>((resolve) => lane.waiting.push({ events, joined, begins: resolve }))
  lane.is_sending = true
  lane.since = Date.now()
  let sent: Sent | undefined
  try {
    sent = await sendNow(sending, events)
    return sent
  } finally {
    for (const tell of joined) tell(sent ?? notSent(events))
    const next = lane.waiting.shift()
    lane.is_sending = next !== undefined
    next?.begins()
  }
}

async function sendNow({ env, context, now }: Sending, events: readonly Clean<Event>[]): Promise<Sent> {
  const batches = grouped(pack(events)).map((group) => {
    const id = newBatchId(now)
    return { id, messages: group.map((message) => ({ ...message, batch: id })), events: group.flatMap((message) => message.events) }
  })
  const sent = send(
    env,
    batches.map(({ messages }) => messages),
  )
  // The way of an event into the queue asks D1 nothing, unless it needs a note.
  if (env.REFLEX_QUEUE_NOTES === 'off') return { known: new Map(), failed: await sent }
  const noted = noteQueued(storeOf(env), batches, now + LATE_MS).catch((error: unknown) => {
    warn({ message: 'failed to note queued events in D1; the queue alone has them', error })
    return null
  })
  context.waitUntil(noted)
  const [known, failed] = await Promise.all([Promise.race([noted, scheduler.wait(QUICK_MS).then(() => null)]), sent])
  return { known: known ?? new Map(), failed }
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
  // Arms again where the clock was ahead.
  if (Math.abs(now - armedAt) < ARM_EVERY_MS) return true
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

const MALFORMED = 'malformed message: expected {"events": [...]}, each event with `id`, `type` and `scope`'

/** Checks only what the consumers rely on: the events were validated when they were accepted. */
function readMessage(body: unknown): QueueMessage | null {
  if (!isFields(body) || !Array.isArray(body['events']) || body['events'].length === 0) return null
  const { scope, events, sender } = body
  const names = new Set(events.map((event) => (isFields(event) ? event['scope'] : undefined)))
  if (scope !== undefined && (names.size > 1 || !names.has(scope))) return null
  if (![...names].every((name) => scopeName.safeParse(name).success)) return null
  if (!events.every((event: Record<string, unknown>) => typeof event['id'] === 'string' && typeof event['type'] === 'string')) return null
  const message = body as QueueMessage
  if (sender === undefined) return message
  if (typeof sender !== 'string' || sender === '' || sender.length > MOST_SENDER) return null
  return { ...message, events: message.events.map((event) => sentBy(event, sender)) }
}

function sentBy(event: Event, sender: string): Event {
  const meta: unknown = event.meta ?? {}
  if (!isFields(meta)) return event
  const { role: _role, ...others } = meta
  return { ...event, meta: { ...others, sender } as Event['meta'] }
}

const isFields = (value: unknown): value is { [name: string]: unknown } => typeof value === 'object' && value !== null

type PackedMessage = { message: QueueMessage; bytes: number }

const MOST_EVENTS = 100

/** Packs events into messages, each scope's together: a queue bills and limits the message. */
export function pack(events: readonly Event[], batch?: string): PackedMessage[] {
  const packed: PackedMessage[] = []
  for (const event of Array.from(Map.groupBy(events, ({ scope }) => scope).values()).flat()) {
    const bytes = byteLength(JSON.stringify(event)) + 1
    const last = packed.at(-1)
    if (last && last.bytes + bytes <= limits.queue_message_bytes && last.message.events.length < MOST_EVENTS) {
      last.message.events.push(event)
      last.bytes += bytes
    } else {
      packed.push({ message: { ...(batch && { batch }), events: [event] }, bytes })
    }
  }
  return packed.map(({ message, bytes }) => {
    const scopes = new Set(message.events.map(({ scope }) => scope))
    // An older Worker reads messages of one scope, which they name.
    return { message: scopes.size > 1 ? message : { scope: message.events[0]?.scope ?? '', ...message }, bytes }
  })
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

/**
 * The events of one scope in a message. `attempts`: their deliveries, this one included. `batch`:
 * what they were sent with.
 */
type ScopePart = { message: Message; scope: string; events: readonly Event[]; attempts: number; batch: string | undefined }
/** Events that their scope did not take, and the pause before the next attempt. */
type Returned = ScopePart & { delay_s: number }
const FULL_S = 30
/** Cloudflare counts the retries of a message, and buries it after `max_retries`. */
const MOST_ATTEMPTS = 6

/**
 * Delivers a batch with one call per scope, and packs what the scopes answer. A message is then
 * acknowledged, or retried if nothing of it was taken. A part that was not taken has a message of
 * its own, which precedes the acknowledgement. Never throws.
 */
export async function consumeEvents(batch: MessageBatch, env: Env, accept_ms = ACCEPT_MS): Promise<void> {
  const read = batch.messages.map((message) => ({ message, ...readWhole(message) }))
  const parts = read.flatMap(({ message, body }) => (body ? partsOf(message, body) : []))
  const delivery = new Delivery(env, accept_ms)
  const [returned] = await Promise.all([
    delivery.all(parts),
    ...read.filter(({ body }) => body === null).map(({ message }) => bury(env, message, MALFORMED)),
  ])
  const of = Map.groupBy(returned, ({ message }) => message)
  await Promise.all(
    read.flatMap(({ message, body, refused }) => (body ? settle(env, { message, body, refused, returned: of.get(message) ?? [] }) : [])),
  )
  await postpone(env, returned)
}

/** A message that names no batch is of another Worker, whose events nobody has judged. */
function readWhole({ body: sent, timestamp }: Message): { body: QueueMessage | null; refused: readonly RefusedEvent[] } {
  const read = readNamed(sent)
  if (!read.body || read.body.batch !== undefined) return read
  const { events, refused } = completed(read.body.events, timestamp.getTime())
  return { body: { ...read.body, events }, refused: [...refused, ...read.refused] }
}

/** Reads a message, also if some of its events lack a name: they keep back no other one. */
function readNamed(sent: unknown): { body: QueueMessage | null; refused: readonly RefusedEvent[] } {
  const whole = readMessage(sent)
  if (whole) return { body: whole, refused: [] }
  const none = { body: null, refused: [] }
  if (!isFields(sent) || !Array.isArray(sent['events'])) return none
  const [named, others] = [new Set<unknown>(), new Set<unknown>()]
  for (const event of sent['events'] as unknown[]) (readMessage({ ...sent, events: [event] }) ? named : others).add(event)
  const body = named.size > 0 && sent['batch'] === undefined ? readMessage({ ...sent, events: [...named] }) : null
  if (!body) return none
  return { body, refused: Array.from(others, (event) => ({ event: event as Event, error: MALFORMED })) }
}

const partsOf = (message: Message, { events, attempts = 0, batch }: QueueMessage): ScopePart[] =>
  Array.from(
    Map.groupBy(events, ({ scope }) => scope),
    ([scope, group]) => ({ message, scope, events: group, attempts: attempts + message.attempts, batch }),
  )

type Settling = { message: Message; body: QueueMessage; refused: readonly RefusedEvent[]; returned: readonly Returned[] }

async function settle(env: Env, { message, body, refused, returned }: Settling): Promise<void> {
  if (refused.length > 0 && !(await isBuried(env, message, lettersOf(refused, message)))) return message.retry({ delaySeconds: 30 })
  const left = returned.flatMap(({ events }) => events)
  if (left.length === 0) return message.ack()
  const { attempts: before = 0, first_at = message.timestamp.getTime(), ...head } = body
  const attempts = before + message.attempts
  const isWhole = left.length === body.events.length && refused.length === 0
  const delaySeconds = Math.max(...returned.map(({ delay_s }) => delay_s))
  if (attempts >= MOST_ATTEMPTS && (before > 0 || !isWhole)) {
    return bury(env, message, NOT_DELIVERED, { ...head, events: left, attempts: before })
  }
  if (isWhole) return message.retry({ delaySeconds })
  try {
    await env.EVENTS.send({ ...head, events: left, attempts, first_at }, { delaySeconds })
    message.ack()
  } catch (error) {
    warn({ message: 'the queue did not take what a scope left; the whole message is delivered again', events: left.length, error })
    message.retry({ delaySeconds })
  }
}

const lettersOf = (refused: readonly RefusedEvent[], { id, attempts }: Message): DeadLetterRow[] =>
  refused.flatMap(({ event, error }, nth) => {
    // An event without a name becomes a letter of no scope, as an unreadable message does.
    const named = error === MALFORMED ? [] : [event]
    return deadLettersOf(named, { id: `${id}:${nth}`, attempts, body: event }, error)
  })

/** Keeps the sweep from resending events that the queue will redeliver. */
async function postpone(env: Env, returned: readonly Returned[]): Promise<void> {
  const ids = new Set(returned.flatMap(({ message }) => readMessage(message.body)?.batch ?? []))
  const longest = Math.max(...returned.map(({ delay_s }) => delay_s))
  try {
    await postponeBatches(storeOf(env), Array.from(ids), Date.now() + longest * 1000 + LATE_MS)
  } catch (error) {
    warn({ message: 'failed to postpone the sweep of retried events; it may send them twice', error })
  }
}

const NOT_DELIVERED = 'not delivered in any attempt: its scope was unreachable, or its inbox was full'

/** Stores messages that failed all delivery attempts as dead letters in D1. */
export async function consumeDeadLetters(batch: MessageBatch, env: Env): Promise<void> {
  const outcomes = batch.messages.filter(({ body }) => outcomesIn(body))
  if (outcomes.length > 0) await consumeOutcomes(outcomes, env)
  const events = batch.messages.filter((message) => !outcomes.includes(message))
  await Promise.all(events.map((message) => bury(env, message, NOT_DELIVERED)))
}

type Taken = 'accepted' | 'full' | 'failed'

/** A scope that gives no answer for so long keeps the events of others in its batch no longer. */
const ACCEPT_MS = 30_000

/**
 * A thousand new scopes that are called at once keep a process from all else for ten seconds.
 * Senders take turns: who sends few events does not wait for all of one who sends many.
 */
const TURNS = {
  ownerOf: ([, [part]]: [string, ScopePart[]]) => part?.events[0]?.meta?.sender ?? '',
  at_once: 16,
  most_ms: 250,
  rest: serveOthers,
}

/**
 * A runtime looks at its connections once no timer is due. The first may be due when the further
 * work of the scopes is over: a later one is not.
 */
async function serveOthers(): Promise<void> {
  for (let nth = 0; nth < 3; nth += 1) await scheduler.wait(1)
}

/** The deliveries of one batch, and what the scopes have answered. */
class Delivery {
  readonly #env: Env
  readonly #accept_ms: number
  /** The scopes that gave no answer in time: they are not called again. */
  readonly #silent = new Set<string>()
  /** By scope, the fewest events that its inbox had no room for: as many are not tried again. */
  readonly #no_room = new Map<string, number>()
  /** By scope. */
  readonly #answers = new Map<string, { outcomes: string; ids: readonly string[] }[]>()

  constructor(env: Env, accept_ms: number) {
    this.#env = env
    this.#accept_ms = accept_ms
  }

  async all(parts: readonly ScopePart[]): Promise<Returned[]> {
    const scopes = Array.from(Map.groupBy(parts, ({ scope }) => scope))
    const returned = (await inTurns(scopes, ([, group]) => this.#deliver(group), TURNS)).flat()
    const has_notes = this.#env.REFLEX_QUEUE_NOTES !== 'off'
    const lost = await this.#pack(has_notes ? [...new Set(parts.flatMap(({ batch }) => batch ?? []))] : [])
    const gone = new Set(returned.map(({ message, scope }) => `${message.id} ${scope}`))
    const again = parts.filter(({ message, scope }) => lost.has(scope) && !gone.has(`${message.id} ${scope}`))
    return [...returned, ...again.map((part) => returnedAs(part, 'failed'))]
  }

  /** Delivers a scope's messages in one call; retried ones alone, so that they block no others. */
  async #deliver(group: readonly ScopePart[]): Promise<Returned[]> {
    const fresh = group.filter(({ attempts }) => attempts <= 1)
    const returned = fresh.length > 0 ? await this.#together(fresh) : []
    for (const part of group) if (part.attempts > 1) returned.push(...(await this.#alone(part)))
    return returned
  }

  async #together(group: readonly ScopePart[]): Promise<Returned[]> {
    const taken = await this.#accept(group.flatMap(({ events }) => events))
    if (taken === 'accepted') return []
    if (taken !== 'full' || group.length === 1) return group.map((part) => returnedAs(part, taken))
    // Too large together: deliver them one by one.
    const returned: Returned[] = []
    for (const part of group) returned.push(...(await this.#together([part])))
    return returned
  }

  /** Splits the part until the failing events are alone. Redelivered duplicates are dropped. */
  async #alone(part: ScopePart): Promise<Returned[]> {
    let calls = MOST_CALLS
    const take = async (events: readonly Event[]): Promise<Returned[]> => {
      const taken = calls-- <= 0 ? 'failed' : await this.#accept(events)
      if (taken === 'accepted') return []
      if (taken === 'full' || events.length === 1 || calls <= 0) return [returnedAs({ ...part, events }, taken)]
      const half = Math.ceil(events.length / 2)
      return [...(await take(events.slice(0, half))), ...(await take(events.slice(half)))]
    }
    return take(part.events)
  }

  async #accept(events: readonly Event[]): Promise<Taken> {
    const scope = events[0]?.scope ?? ''
    if (this.#silent.has(scope)) return 'failed'
    if (events.length >= (this.#no_room.get(scope) ?? Infinity)) return 'full'
    try {
      const accept = async () => this.#env.SCOPE.getByName(scope).accept([...events], 'queue', 'rows, too')
      const accepted = await withDeadline(accept, { timeout_ms: this.#accept_ms, what: 'accepting queued events' })
      if (!accepted.ok) {
        this.#no_room.set(scope, events.length)
        return 'full'
      }
      const { outcomes, receipts } = accepted
      const answers = this.#answers.get(scope) ?? []
      if (outcomes !== undefined) this.#answers.set(scope, [...answers, { outcomes, ids: receipts.map(({ id }) => id) }])
      return 'accepted'
    } catch (error) {
      if (error instanceof TooLate) this.#silent.add(scope)
      warn({ message: 'a scope did not accept queued events; will retry', scope, events: events.length, error })
      return 'failed'
    }
  }

  /** Packs the answers. If D1 fails, scopes report them: returns the scopes that do not know it. */
  async #pack(batches: readonly string[]): Promise<ReadonlySet<string>> {
    const answers = Array.from(this.#answers.values()).flat()
    const lost = new Set<string>()
    try {
      await packAnswers(
        this.#env,
        answers.map(({ outcomes }) => outcomes),
        batches,
      )
    } catch (error) {
      warn({ message: 'failed to pack outcomes; their scopes report them', scopes: this.#answers.size, error })
      for (const [scope, own] of this.#answers) {
        const ids = own.flatMap((answer) => answer.ids)
        const told = this.#env.SCOPE.getByName(scope).unpacked(ids)
        await told.catch(() => lost.add(scope))
      }
    }
    return lost
  }
}

/** Finds two failing events among a thousand, and bounds the calls to an unreachable scope. */
const MOST_CALLS = 40

const returnedAs = (part: ScopePart, taken: Exclude<Taken, 'accepted'>): Returned => ({
  ...part,
  delay_s: taken === 'full' ? FULL_S : backoff(pauses.queue, part.attempts) / 1000,
})

async function bury(env: Env, message: Message, error: string, given: unknown = message.body): Promise<void> {
  const { body, refused } = readNamed(given)
  const attempts = (body?.attempts ?? 0) + message.attempts
  const letters = [...deadLettersOf(body?.events ?? [], { id: message.id, attempts, body: given }, error), ...lettersOf(refused, message)]
  if (await isBuried(env, message, letters)) message.ack()
  else message.retry({ delaySeconds: 30 })
}

/** Writes letters of a message. False if D1 has not taken them. */
async function isBuried(env: Env, { id }: Message, letters: readonly DeadLetterRow[]): Promise<boolean> {
  try {
    const hider = deploymentHider(env)
    await addDeadLetters(
      storeOf(env),
      letters.map((letter) => ({ ...letter, payload: hider.text(letter.payload) })),
    )
    return true
  } catch (error) {
    logError({ message: 'failed to write a dead letter; will retry', id, error })
    return false
  }
}
