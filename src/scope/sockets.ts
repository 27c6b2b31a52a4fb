import type { Event } from '../core/event.ts'
import type { ApprovalDecision, Decider } from '../protocol/approval.ts'
import { limits } from '../protocol/limits.ts'
import { keyDeleted } from '../protocol/key-deleted.ts'
import type { EventRules } from '../protocol/parse-event.ts'
import type { SecretHider } from '../protocol/secrets.ts'
import type { FieldError } from '../protocol/problem.ts'
import type { Accepted, Connect } from '../protocol/scope-api.ts'
import type { Log } from './log.ts'
import type { DecisionAnswer } from './skills/decisions.ts'
import { readSocketInput } from './socket-input.ts'

/** What a socket is, across hibernation. `cursor` is set while it still catches up with the log: the last `seq` that it was sent. `live_after` is
 * the last that it needs not be told any more. */
type Attachment = Omit<Connect, 'after'> & { cursor: number | null; live_after: number }

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

const PAGE = 500
const GATHER_MS = 5

type Delta = { turn_id: string; content: string } | { turn_id: null; event_id: string; content: string }
type Entry = { seq: number; text: string }

/**
 * WebSockets, hibernating. Every log entry goes to every socket as it is written; an event is acknowledged once it is durable: the object's output gate holds
 * what is sent until the storage has what was written before. Sending never waits for a client.
 */
export class Sockets {
  readonly #parts: Parts
  readonly #attachments = new Map<WebSocket, Attachment>()
  #gathered: Entry[] = []
  readonly #sent = new WeakMap<WebSocket, { second: number; messages: number }>()

  constructor(parts: Parts) {
    this.#parts = parts
    // Answered by the runtime, without waking the object.
    parts.context.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
    for (const socket of parts.context.getWebSockets()) {
      const attachment = socket.deserializeAttachment() as Attachment
      this.#attachments.set(socket, attachment)
      if (attachment.cursor !== null) void this.#catchUp(socket, attachment)
    }
    parts.log.listen((entries) => this.#gather(entries))
  }

  get count(): number {
    return this.#attachments.size
  }

  /** The ids of their keys. */
  get keys(): string[] {
    return Array.from(this.#attachments.values(), ({ key_id }) => key_id)
  }

  connect({ after, ...connect }: Connect): Response {
    if (this.count >= limits.sockets_per_scope) return new Response(null, { status: 503 })
    const { 0: client, 1: server } = new WebSocketPair()
    const { last } = this.#parts.log
    const attachment: Attachment = { ...connect, cursor: after, live_after: last }
    this.#parts.context.acceptWebSocket(server)
    server.serializeAttachment(attachment)
    this.#attachments.set(server, attachment)
    // Ahead of all else, so that a client knows where to resume even if nothing else reaches it.
    this.#deliver(server, JSON.stringify({ type: 'open', seq: after ?? last }))
    if (after !== null) void this.#catchUp(server, attachment)
    return new Response(null, { status: 101, webSocket: client })
  }

  async message(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const attachment = this.#attachments.get(socket)
    if (!attachment) return closeQuietly(socket)
    this.#parts.used()
    const { connection_id, source, may_send, decides_as } = attachment
    if (!may_send) return this.#refuse(socket, [{ path: '', message: 'this key may only receive here: sending needs the role publisher' }])
    if (this.#tooFast(socket)) {
      return this.#refuse(socket, [
        { path: '', message: `at most ${limits.socket_messages_per_second} messages a second; this one was not accepted` },
      ])
    }
    const input = readSocketInput(message, connection_id, this.#parts.rules(source))
    if (!input.ok) return this.#refuse(socket, input.errors, input.id)
    if (input.kind === 'decision') return this.#decide(socket, input.decision, decides_as)
    const accepted = this.#parts.accept([input.event])
    if (!accepted.ok) {
      const full = `the inbox is full (${accepted.depth} of ${accepted.limit}); send the event again later`
      return this.#refuse(socket, [{ path: '', message: full }], input.event.id)
    }
    for (const { id, status } of accepted.receipts) this.#deliver(socket, JSON.stringify({ type: 'ack', id, status }))
  }

  closed(socket: WebSocket): void {
    this.#attachments.delete(socket)
  }

  /** Ends the sockets of keys that were deleted. */
  end(keys: ReadonlySet<string>): void {
    for (const [socket, { key_id }] of this.#attachments) {
      if (!keys.has(key_id)) continue
      this.#attachments.delete(socket)
      closeQuietly(socket, keyDeleted)
    }
  }

  /** A piece of an answer, to every socket, ahead of the log's entry of the whole: a turn streams many, a reflex has one. */
  say(delta: Delta): void {
    if (this.#attachments.size === 0) return
    this.#parts.used()
    const text = this.#parts.hider.text(JSON.stringify({ type: 'delta', ...delta }))
    for (const socket of this.#attachments.keys()) this.#deliver(socket, text)
  }

  /** Acknowledgements and answers go first; a few milliseconds of the log go together. */
  #gather(entries: readonly Entry[]): void {
    if (this.#attachments.size === 0) return
    if (this.#gathered.length === 0) setTimeout(() => this.#tell(), GATHER_MS)
    this.#gathered.push(...entries)
  }

  #tell(): void {
    const entries = this.#gathered
    this.#gathered = []
    this.#parts.used()
    for (const [socket, { cursor, live_after }] of this.#attachments) {
      // One that catches up reads them itself, and one that has caught up meanwhile has read some.
      if (cursor !== null) continue
      for (const { seq, text } of entries) if (seq > live_after) this.#deliver(socket, frame(text))
    }
  }

  async #decide(socket: WebSocket, decision: ApprovalDecision, by: Decider | null): Promise<void> {
    const id = decision.approval_id
    if (!by) return this.#refuse(socket, [{ path: '', message: 'deciding on approvals needs the role operator' }], id)
    const answer = await this.#parts.decide(decision, by)
    if (!answer.ok) return this.#refuse(socket, [{ path: '', message: answer.message }], id)
    this.#deliver(socket, JSON.stringify({ type: 'ack', id, status: answer.status }))
  }

  #refuse(socket: WebSocket, errors: FieldError[], id: string | null = null): void {
    this.#deliver(socket, JSON.stringify({ type: 'error', ...(id === null ? {} : { id }), errors }))
  }

  /** Page by page, other work in between; live once it has seen the log's end. */
  async #catchUp(socket: WebSocket, attachment: Attachment): Promise<void> {
    while (attachment.cursor !== null && this.#attachments.has(socket)) {
      const entries = this.#parts.log.read(attachment.cursor, PAGE)
      for (const { text } of entries) this.#deliver(socket, frame(text))
      attachment.live_after = this.#parts.log.last
      attachment.cursor = entries.at(-1)?.seq ?? null
      if (this.#attachments.has(socket)) socket.serializeAttachment(attachment)
      await scheduler.wait(0)
    }
  }

  #deliver(socket: WebSocket, text: string): void {
    try {
      socket.send(text)
    } catch {
      // Gone, or as good as that: the client resumes by `?after=` when it comes back.
      this.#attachments.delete(socket)
      closeQuietly(socket)
    }
  }

  #tooFast(socket: WebSocket): boolean {
    const second = Math.floor(this.#parts.now() / 1000)
    const sent = this.#sent.get(socket)
    const messages = sent?.second === second ? sent.messages + 1 : 1
    this.#sent.set(socket, { second, messages })
    return messages > limits.socket_messages_per_second
  }
}

const sendingFailed = { code: 1011, reason: 'sending failed' }

function closeQuietly(socket: WebSocket, { code, reason } = sendingFailed): void {
  try {
    socket.close(code, reason)
  } catch {
    // It is closed already.
  }
}

const frame = (entry: string): string => `{"type":"log","entry":${entry}}`
