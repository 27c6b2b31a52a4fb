import type { Event } from '../../core/event.ts'
import type { ApprovalDecision, Decider } from '../../contract/approval.ts'
import { byteLength } from '../../base/byte-length.ts'
import { keyDeleted, type Accepted, type Connect } from '../../contract/scope-api.ts'
import { limits } from '../../base/limits.ts'
import { messageOf } from '../../base/error-text.ts'
import type { EventRules } from '../../events/parse-event.ts'
import type { SecretHider } from '../../base/secrets.ts'
import type { FieldError } from '../../base/check-json.ts'
import type { Log } from '../log/log.ts'
import type { DecisionAnswer } from '../skills/decisions.ts'
import { SocketFeed, type Attachment } from './socket-feed.ts'
import { readMark, readSocketInput } from './socket-input.ts'
import { MessageRate, SocketBatches, type Message } from './socket-batches.ts'

type Parts = {
  context: DurableObjectState
  log: Log
  hider: SecretHider
  rules: (source: string) => EventRules
  accept: (events: Event[]) => Accepted
  decide: (decision: ApprovalDecision, by: Decider) => Promise<DecisionAnswer>
  used: () => void
  now: () => number
}
type Entry = { seq: number; text: string }
type Delta = { turn_id: string; content: string } | { turn_id: null; event_id: string; content: string }

/**
 * Hibernating WebSockets. Every socket gets every log entry as it is written. An acknowledgement
 * means that the event is durable: the object's output gate holds it until the write is on disk.
 */
export class Sockets {
  readonly #parts: Parts
  readonly #feed: SocketFeed
  readonly #batches: SocketBatches<WebSocket>
  readonly #rates = new WeakMap<WebSocket, MessageRate>()
  #gathered: Entry[] = []
  #replies: Delta[] = []

  constructor(parts: Parts) {
    this.#parts = parts
    const { context, log, now } = parts
    this.#feed = new SocketFeed({ log, now })
    this.#batches = new SocketBatches((messages) => this.#take(messages))
    // Answered by the runtime, without waking the object.
    context.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
    for (const socket of context.getWebSockets()) {
      this.#feed.add(socket, socket.deserializeAttachment() as Attachment)
      this.#feed.follow(socket)
    }
    log.listen((entries) => this.#gather(entries))
  }

  get count(): number {
    return this.#feed.size
  }

  get keys(): string[] {
    return this.#feed.keys
  }

  connect({ after, ...connect }: Connect): Response {
    if (this.count >= limits.sockets_per_scope) return new Response(null, { status: 503 })
    const { 0: client, 1: server } = new WebSocketPair()
    const { last } = this.#parts.log
    const counts = { sent: 0, marked: 0, read: 0, closing: false }
    const attachment: Attachment = { ...connect, ...counts, cursor: after, live_after: last }
    this.#parts.context.acceptWebSocket(server)
    server.serializeAttachment(attachment)
    this.#feed.add(server, attachment)
    // The first frame, so that a client knows where to resume even if nothing else reaches it.
    this.#feed.deliver(server, JSON.stringify({ type: 'open', seq: after ?? last }))
    this.#feed.follow(server)
    return new Response(null, { status: 101, webSocket: client })
  }

  message(socket: WebSocket, message: string | ArrayBuffer): void {
    const attachment = this.#feed.of(socket)
    if (!attachment) return
    this.#parts.used()
    const read = readMark(message)
    if (read !== null) return this.#feed.seen(socket, read)
    this.#batches.add(this.#read(socket, attachment, message))
  }

  closed(socket: WebSocket): void {
    this.#feed.forget(socket)
    this.#batches.forget(socket)
  }

  /** Closes the sockets of deleted keys. */
  end(keys: ReadonlySet<string>): void {
    this.#feed.end(keys, keyDeleted)
  }

  /** Streams part of an answer to every socket, ahead of its log entry. */
  stream(delta: Delta): void {
    if (this.count === 0) return
    this.#parts.used()
    this.#feed.broadcast(this.#parts.hider.text(JSON.stringify({ type: 'delta', ...delta })))
  }

  /** Sends a reply at the end of the current task, after its acknowledgements. */
  reply(delta: Delta): void {
    if (this.count === 0) return
    this.#pushLater()
    this.#replies.push(delta)
  }

  /** Sends entries at the end of the task that wrote them, after its acknowledgements. */
  #gather(entries: readonly Entry[]): void {
    if (this.count === 0) return
    this.#pushLater()
    this.#gathered.push(...entries)
  }

  #pushLater(): void {
    if (this.#gathered.length + this.#replies.length === 0) queueMicrotask(() => this.#push())
  }

  #push(): void {
    const [replies, entries] = [this.#replies, this.#gathered]
    ;[this.#replies, this.#gathered] = [[], []]
    this.#parts.used()
    for (const delta of replies) this.stream(delta)
    this.#feed.push(entries)
  }

  /**
   * Errors are answered in order, too: a client may need the order to match them to its messages.
   */
  #read(socket: WebSocket, attachment: Attachment, message: string | ArrayBuffer): Message<WebSocket> {
    const { connection_id, source, may_send, decides_as } = attachment
    const other = (answer: () => void) => ({ socket, bytes: 0, kind: 'other' as const, answer })
    const refused = (text: string) => other(() => this.#refuse(socket, [{ path: '', message: text }]))
    if (!may_send) return refused('this key may only receive here: sending needs the role publisher')
    if (!this.#rate(socket).take(this.#parts.now()) || this.#batches.full(socket)) return refused(TOO_FAST)
    const input = readSocketInput(message, connection_id, this.#parts.rules(source))
    if (!input.ok) return other(() => this.#refuse(socket, input.errors, input.id))
    if (input.kind === 'decision') return other(() => void this.#decide(socket, input.decision, decides_as))
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
    const answers = this.#accept(messages.flatMap((message) => (message.kind === 'event' ? [message.event] : [])))
    let event = 0
    for (const message of messages) {
      if (message.kind === 'other') {
        message.answer()
        continue
      }
      const answer = answers[event]
      event += 1
      if (answer?.ok) this.#feed.deliver(message.socket, JSON.stringify({ type: 'ack', id: message.event.id, status: answer.status }))
      else this.#refuse(message.socket, [{ path: '', message: answer?.why ?? NOT_WRITTEN }], message.event.id)
    }
  }

  /**
   * Accepts all in one write. If that fails, accepts each alone, so only faulty ones are refused.
   */
  #accept(events: Event[]): Answer[] {
    if (events.length === 0) return []
    try {
      const accepted = this.#parts.accept(events)
      if (accepted.ok) return accepted.receipts.map(({ status }) => ({ ok: true, status }))
      if (events.length === 1) {
        const { depth, limit } = accepted
        return [{ ok: false, why: `the inbox is full (${depth} of ${limit}); send the event again later` }]
      }
    } catch (error) {
      if (events.length === 1) return [{ ok: false, why: `${NOT_WRITTEN}: ${messageOf(error)}` }]
    }
    return events.flatMap((event) => this.#accept([event]))
  }

  async #decide(socket: WebSocket, decision: ApprovalDecision, by: Decider | null): Promise<void> {
    const id = decision.approval_id
    if (!by) return this.#refuse(socket, [{ path: '', message: 'deciding on approvals needs the role operator' }], id)
    const answer = await this.#parts.decide(decision, by)
    if (!answer.ok) return this.#refuse(socket, [{ path: '', message: answer.message }], id)
    this.#feed.deliver(socket, JSON.stringify({ type: 'ack', id, status: answer.status }))
  }

  #refuse(socket: WebSocket, errors: FieldError[], id: string | null = null): void {
    this.#feed.deliver(socket, JSON.stringify({ type: 'error', ...(id === null ? {} : { id }), errors }))
  }
}

type Answer = { ok: true; status: string } | { ok: false; why: string }
const TOO_FAST = `at most ${limits.socket_messages_per_second} messages a second; this one was not accepted`
const NOT_WRITTEN = 'the event could not be written; send it again later'
