import { byteLength, fitsBytes, jsonValue } from '../../base/json.ts'
import type { FieldError } from '../../base/check-json.ts'
import { messageOf } from '../../base/error-text.ts'
import { limits } from '../../base/limits.ts'
import { type DecidedBy, senderRole } from '../../contract/principal.ts'
import type { EventReceipt } from '../../contract/event-record.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { AgentRegistry } from '../../agent/registry.ts'
import type { Clean, SecretHider } from '../../base/secrets.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Event } from '../../core/event.ts'
import { declaredTypes, type EventRules, parseEvent } from '../../events/parse-event.ts'
import { senderOfKey } from '../../contract/sender.ts'
import { idIn, type ReadCommand, type SocketCommands } from './socket-command.ts'
import type { KeyCheck, Attachment, Sockets } from './sockets.ts'
import { z } from 'zod'

type SocketMessagesParts = {
  scope: string
  agents: AgentRegistry
  hider: SecretHider
  now: () => number
  settings: () => Settings
  sockets: Pick<Sockets, 'feed'>
  key_check: Pick<KeyCheck, 'used'>
  loop: { arrive(events: Clean<Event>[], by: 'socket', answer: (accepted: Accepted) => void): void }
  features: readonly Commanding[]
}

/** Messages from sockets. Acknowledged events are durable: the output gate holds the answer. */
export class SocketMessages {
  readonly #parts: SocketMessagesParts
  readonly #batches = new SocketBatches<WebSocket>((messages) => this.#take(messages))
  readonly #rates = new WeakMap<WebSocket, MessageRate>()

  constructor(parts: SocketMessagesParts) {
    this.#parts = parts
  }

  message(socket: WebSocket, message: string | ArrayBuffer): void {
    const attachment = this.#parts.sockets.feed.of(socket)
    if (!attachment) return
    this.#parts.key_check.used()
    const read = readMark(message)
    if (read !== null) return this.#parts.sockets.feed.seen(socket, read)
    this.#batches.add(this.#read(socket, attachment, message))
  }

  closed(socket: WebSocket): void {
    this.#parts.sockets.feed.forget(socket)
    this.#batches.forget(socket)
  }

  #rules({ source, key_id, decides_as }: Attachment): EventRules {
    const { agents, scope, hider, now, settings } = this.#parts
    return {
      union: agents.eventSchema,
      types: agents.eventTypes,
      declared: declaredTypes(settings().event_types),
      defaults: { now: now(), source },
      sender: senderOfKey(key_id),
      role: decides_as ? senderRole({ key_id, roles: [decides_as.is_admin ? 'admin' : 'operator'] }) : undefined,
      heard: true,
      scope,
      secrets: hider,
    }
  }

  /** Errors are answered in order, too, so that clients can match them. */
  #read(socket: WebSocket, attachment: Attachment, message: string | ArrayBuffer): Message<WebSocket> {
    const { connection_id, may_send, decides_as } = attachment
    const other = (answer: () => void) => ({ socket, bytes: 0, kind: 'other' as const, answer })
    const refused = (text: string) => other(() => this.#refuse(socket, [{ path: '', message: text }]))
    if (!may_send) return refused('this key may only receive here: sending needs the role publisher')
    if (!this.#rate(socket).take(this.#parts.now()) || this.#batches.full(socket)) return refused(TOO_FAST)
    const input = readSocketInput(message, connection_id, { rules: this.#rules(attachment), features: this.#parts.features })
    if (!input.ok) return other(() => this.#refuse(socket, input.errors, input.id))
    if (input.kind === 'command') return other(() => void this.#perform(socket, input.command, decides_as))
    const bytes = typeof message === 'string' ? byteLength(message) : message.byteLength
    return { socket, bytes, kind: 'event', event: input.event }
  }

  #rate(socket: WebSocket): MessageRate {
    const known = this.#rates.get(socket)
    const rate = known ?? new MessageRate(limits.socket_messages_per_second, this.#parts.now())
    if (!known) this.#rates.set(socket, rate)
    return rate
  }

  #take(messages: readonly Message<WebSocket>[]): void {
    const events = messages.flatMap((message) => (message.kind === 'event' ? [message.event] : []))
    if (events.length === 0) return this.#answer(messages, [])
    try {
      this.#parts.loop.arrive(events, 'socket', (accepted) => {
        if (accepted.ok) this.#answer(messages, accepted.receipts)
        else this.#apart(messages, whyRefused(accepted))
      })
    } catch (error) {
      this.#apart(messages, `${NOT_WRITTEN}: ${messageOf(error)}`)
    }
  }

  /** All could not be written together: each is accepted alone, or the only one refused. */
  #apart(messages: readonly Message<WebSocket>[], why: string): void {
    const [first] = messages
    if (messages.length > 1) for (const message of messages) this.#take([message])
    else if (first?.kind === 'event') this.#refuse(first.socket, [{ path: '', message: why }], first.event.id)
  }

  #answer(messages: readonly Message<WebSocket>[], receipts: readonly EventReceipt[]): void {
    let event = 0
    for (const message of messages) {
      if (message.kind === 'other') {
        message.answer()
        continue
      }
      const { id } = message.event
      const receipt = receipts[event]
      event += 1
      if (receipt) this.#parts.sockets.feed.deliver(message.socket, JSON.stringify({ type: 'ack', id, status: receipt.status }))
      else this.#refuse(message.socket, [{ path: '', message: NOT_WRITTEN }], id)
    }
  }

  async #perform(socket: WebSocket, { id, take }: ReadCommand, by: DecidedBy | null): Promise<void> {
    const answer = await take(by)
    if (!answer.ok) return this.#refuse(socket, [{ path: '', message: answer.message }], id)
    this.#parts.sockets.feed.deliver(socket, JSON.stringify({ type: 'ack', id, status: answer.status }))
  }

  #refuse(socket: WebSocket, errors: FieldError[], id: string | null = null): void {
    this.#parts.sockets.feed.deliver(socket, JSON.stringify({ type: 'error', ...(id === null ? {} : { id }), errors }))
  }
}

function whyRefused({ depth, limit, rows }: Extract<Accepted, { ok: false }>): string {
  if (rows) return `the scope has written ${rows.limit} rows today, the limit of its budget`
  return `the inbox is full (${depth} of ${limit}); send the event again later`
}

const TOO_FAST = `at most ${limits.socket_messages_per_second} messages a second; this one was not accepted`
const NOT_WRITTEN = 'the event could not be written; send it again later'

const mark = z.object({ type: z.literal('mark'), sent: z.int().min(0) })
const LONGEST_MARK = 100

/** A `mark` that came back: how many bytes the client has read. */
function readMark(message: string | ArrayBuffer): number | null {
  if (typeof message !== 'string' || message.length > LONGEST_MARK || !message.includes('"mark"')) return null
  return mark.safeParse(jsonValue(message)).data?.sent ?? null
}

/** `id` is the id of the refused event or command, if it could be read. */
type SocketInput =
  | { ok: true; kind: 'event'; event: Clean<Event> }
  | { ok: true; kind: 'command'; command: ReadCommand }
  | { ok: false; id: string | null; errors: FieldError[] }

const refused = (message: string): SocketInput => ({ ok: false, id: null, errors: [{ path: '', message }] })

type Commanding = { readonly messages?: SocketCommands }
type InputRules = { rules: EventRules; features: readonly Commanding[] }

/** Parses a message: an event, `{"content": "…"}` or a command of a feature. Never throws. */
function readSocketInput(message: string | ArrayBuffer, connection_id: string, { rules, features }: InputRules): SocketInput {
  if (typeof message !== 'string') return refused('binary messages are not understood: send JSON as text')
  if (!fitsBytes(message, limits.body_bytes)) return refused(`a message is at most ${limits.body_bytes} bytes; this one has more`)
  let value: unknown
  try {
    value = JSON.parse(message)
  } catch (error) {
    return refused(`not JSON: ${messageOf(error)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refused('send one event, or {"content": "…"}, as a JSON object')
  const input = value as Record<string, unknown>
  const { type } = input
  for (const { messages } of features) {
    const read = messages && typeof type === 'string' && Object.hasOwn(messages, type) ? messages[type]?.(input) : undefined
    if (read) return read.ok ? { ok: true, kind: 'command', command: read } : read
  }
  const shorthand = !('type' in input) && 'content' in input
  const chat = { connection_id, source: `ws:${connection_id}`.slice(0, 128), ...input, type: 'ws.message' }
  const parsed = parseEvent(shorthand ? chat : input, rules)
  return parsed.ok ? { ok: true, kind: 'event', event: parsed.event } : { ok: false, id: idIn(input, 'id'), errors: parsed.errors }
}

/** A message of a socket. Each socket is answered in order. */
export type Message<Socket> = { socket: Socket; bytes: number } & (
  | { kind: 'event'; event: Clean<Event> }
  | { kind: 'other'; answer: () => void }
)
type Take<Socket> = (messages: readonly Message<Socket>[]) => void
type Waiting<Socket> = { messages: Message<Socket>[]; bytes: number }

/** The most messages of one socket in a round, so that the others do not wait for it. */
const SHARE = 16
const BATCH = 64
const BATCH_BYTES = 1_000_000
const GATHER_MS = 3
/** Up to this many messages of one socket, and sockets that send, are not a burst yet. */
const ALONE = { of_one: 2, of_all: 8 } as const

/**
 * Batches the messages of bursts, fairly among sockets. A lone message is handled at once. The
 * runtime delivers its messages before timers, so messages before a timer of 0 ms are a burst.
 */
export class SocketBatches<Socket> {
  readonly #take: Take<Socket>
  readonly #waiting = new Map<Socket, Waiting<Socket>>()
  /** Messages of each socket since the last pause; null during a pause. */
  #heard: Map<Socket, number> | null = null
  #count = 0

  constructor(take: Take<Socket>) {
    this.#take = take
  }

  /** True if the socket has sent more than is buffered for it. */
  full(socket: Socket): boolean {
    return (this.#waiting.get(socket)?.bytes ?? 0) >= limits.body_bytes
  }

  add(message: Message<Socket>): void {
    if (this.#isAlone(message.socket)) return this.#take([message])
    this.#gather(message)
    if (this.#count >= BATCH) this.#take(this.#gathered())
  }

  forget(socket: Socket): void {
    this.#count -= this.#waiting.get(socket)?.messages.length ?? 0
    this.#waiting.delete(socket)
  }

  #isAlone(socket: Socket): boolean {
    if (!this.#heard) setTimeout(() => this.#ended(), 0)
    this.#heard ??= new Map()
    const of_one = (this.#heard.get(socket) ?? 0) + 1
    this.#heard.set(socket, of_one)
    return this.#count === 0 && of_one <= ALONE.of_one && this.#heard.size <= ALONE.of_all
  }

  #gather(message: Message<Socket>): void {
    const waiting = this.#waiting.get(message.socket) ?? { messages: [], bytes: 0 }
    waiting.messages.push(message)
    waiting.bytes += message.bytes
    this.#waiting.set(message.socket, waiting)
    this.#count += 1
  }

  /** The timer fired: handles the rest. If nothing is left, the next message is alone again. */
  #ended(): void {
    const batch = this.#gathered()
    this.#heard = batch.length > 0 ? new Map() : null
    if (!this.#heard) return
    setTimeout(() => this.#ended(), GATHER_MS)
    this.#take(batch)
  }

  /** Takes a share of each socket in turn, until nothing is left or a batch is full. */
  #gathered(): Message<Socket>[] {
    const batch: Message<Socket>[] = []
    let room = BATCH_BYTES
    // A re-added socket comes up again in this loop, after the others.
    for (const [socket, waiting] of this.#waiting) {
      this.#waiting.delete(socket)
      const share = waiting.messages.splice(0, SHARE)
      const bytes = share.reduce((sum, message) => sum + message.bytes, 0)
      batch.push(...share)
      room -= bytes
      waiting.bytes -= bytes
      if (waiting.messages.length > 0) this.#waiting.set(socket, waiting)
      if (batch.length >= BATCH || room <= 0) break
    }
    this.#count -= batch.length
    return batch
  }
}

/** A token bucket: `per_second` messages a second, and as many in a burst. */
export class MessageRate {
  readonly #per_second: number
  #left: number
  #at: number

  constructor(per_second: number, now: number) {
    this.#per_second = per_second
    this.#left = per_second
    this.#at = now
  }

  /** Takes a token; false if the bucket is empty. */
  take(now: number): boolean {
    const filled = this.#left + (Math.max(0, now - this.#at) * this.#per_second) / 1000
    this.#left = Math.min(this.#per_second, filled)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
