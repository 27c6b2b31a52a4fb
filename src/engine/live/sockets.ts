import { keyDeleted, type AnswerPart, type Connect } from '../../contract/scope-api.ts'
import { limits } from '../../base/limits.ts'
import type { KeyCheck } from './key-check.ts'
import { SocketFeed, type Attachment } from './socket-feed.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { Streams } from './sse.ts'

type SocketsParts = Pick<Lanes, 'context' | 'log' | 'hider' | 'now'> & {
  turns: { readonly current: { turn_id: string } | null }
  key_check: Pick<KeyCheck, 'used' | 'watch'>
  streams: Pick<Streams, 'part'>
}
type SocketEntry = { seq: number; text: string }
type Delta = { turn_id: string; content: string } | { turn_id: null; event_id: string; content: string }

/** Characters of an answer that are kept for sockets that open while it is produced. */
const MOST_PARTIAL = 65_536

/** Hibernating WebSockets. Every socket gets every log entry. */
export class Sockets {
  readonly #parts: SocketsParts
  /** Sends to each socket at its client's pace. */
  readonly feed: SocketFeed
  #gathered: SocketEntry[] = []
  #replies: Delta[] = []
  /** The answer of the turn in flight so far, for sockets that open meanwhile. Not stored. */
  #partial = { turn_id: '', content: '', length: 0 }

  constructor(parts: SocketsParts) {
    this.#parts = parts
    const { context, log, now } = parts
    this.feed = new SocketFeed({ log, now })
    parts.key_check.watch(this)
    // Answered by the runtime, without waking the object.
    context.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
    for (const socket of context.getWebSockets()) {
      this.feed.add(socket, socket.deserializeAttachment() as Attachment)
      this.feed.follow(socket)
    }
    log.listen((entries) => this.#gather(entries))
  }

  get count(): number {
    return this.feed.size
  }

  get keys(): string[] {
    return this.feed.keys
  }

  connect({ after, ...connect }: Connect): Response {
    if (this.count >= limits.sockets_per_scope) return new Response(null, { status: 503 })
    const { 0: client, 1: server } = new WebSocketPair()
    const { last } = this.#parts.log
    const counts = { sent: 0, marked: 0, read: 0, closing: false }
    const attachment: Attachment = { ...connect, ...counts, cursor: after, live_after: last }
    this.#parts.context.acceptWebSocket(server)
    server.serializeAttachment(attachment)
    this.feed.add(server, attachment)
    // The first frame, so that a client knows where to resume even if nothing else reaches it.
    this.feed.deliver(server, JSON.stringify({ type: 'open', seq: after ?? last }))
    this.#catchUp(server)
    this.feed.follow(server)
    return new Response(null, { status: 101, webSocket: client })
  }

  end(keys: ReadonlySet<string>): void {
    this.feed.end(keys, keyDeleted)
  }

  /** Streams part of an answer to every socket, ahead of its log entry. */
  stream(delta: Delta): void {
    if (delta.turn_id !== null) this.#note(delta)
    if (this.count === 0) return
    this.#parts.key_check.used()
    this.feed.broadcast(this.#parts.hider.text(JSON.stringify({ type: 'delta', ...delta })))
  }

  #note({ turn_id, content }: { turn_id: string; content: string }): void {
    const { content: so_far, length } = this.#partial.turn_id === turn_id ? this.#partial : { content: '', length: 0 }
    const shown = this.#parts.hider.text(content)
    this.#parts.streams.part({ turn_id, from: length, content: shown })
    this.#partial = { turn_id, content: (so_far + content).slice(0, MOST_PARTIAL), length: length + shown.length }
  }

  /** Null without its whole beginning: a client then waits for the entry `reply-sent`. */
  get answer(): AnswerPart | null {
    const { turn_id, content } = this.#partial
    if (this.#parts.turns.current?.turn_id !== turn_id || content.length === MOST_PARTIAL) return null
    return { turn_id, content: this.#parts.hider.text(content), from: 0 }
  }

  #catchUp(socket: WebSocket): void {
    const { answer } = this
    if (answer) this.feed.deliver(socket, JSON.stringify({ type: 'delta', ...answer }))
  }

  /** Sends a reply at the end of the current task, after its acknowledgements. */
  reply(delta: Delta): void {
    if (this.count === 0) return
    this.#pushLater()
    this.#replies.push(delta)
  }

  /** Sends entries at the end of the task that wrote them, after its acknowledgements. */
  #gather(entries: readonly SocketEntry[]): void {
    if (this.count === 0) return
    this.#pushLater()
    this.#gathered.push(...entries)
  }

  #pushLater(): void {
    if (this.#gathered.length + this.#replies.length === 0) queueMicrotask(() => this.#push())
  }

  #push(): void {
    const replies = this.#replies
    const entries = this.#gathered
    this.#replies = []
    this.#gathered = []
    this.#parts.key_check.used()
    for (const delta of replies) this.stream(delta)
    this.feed.push(entries)
  }
}
