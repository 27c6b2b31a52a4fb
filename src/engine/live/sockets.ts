import { keyDeleted, type AnswerPart, type Connect, tooFarBehind } from '../../contract/scope-api.ts'
import { limits } from '../../base/limits.ts'
import { WATCHER } from '../../contract/watcher.ts'
import { senderOfKey } from '../../contract/sender.ts'
import { byteLength } from '../../base/json.ts'
import type { SecretHider } from '../../base/secrets.ts'
import type { Log } from '../log/log.ts'
import { ADMIN_KEY_ID } from '../../contract/principal.ts'
import { withDeadline } from '../../base/deadline.ts'
import { warn } from '../../base/warn.ts'

const EVERY_MS = 60_000
const TIMEOUT_MS = 10_000

/** Sockets or streams, by the ids of their keys. */
type Connections = { readonly keys: readonly string[]; end: (keys: ReadonlySet<string>) => void }
type KeyCheckParts = {
  scope: string
  /** Returns the keys that still exist and have not expired. */
  valid: (keys: string[]) => Promise<Set<string>>
  now: () => number
}

/**
 * Closes connections soon after their key is deleted or expires: while they are in use, checks at
 * most once a minute that their keys are valid. Keys never change.
 */
export class KeyCheck {
  readonly #parts: KeyCheckParts
  readonly #connections: Connections[] = []
  #next = 0

  constructor(parts: KeyCheckParts) {
    this.#parts = parts
  }

  watch(connections: Connections): void {
    this.#connections.push(connections)
  }

  /** Call it on every use of a connection. */
  used(): void {
    const now = this.#parts.now()
    // The next check is further away only if the clock was set back.
    if (now < this.#next && this.#next - now <= EVERY_MS) return
    this.#next = now + EVERY_MS
    void this.#check()
  }

  async #check(): Promise<void> {
    const { scope, valid } = this.#parts
    // The bootstrap key is in no table.
    const keys = new Set(this.#connections.flatMap((some) => some.keys))
    keys.delete(ADMIN_KEY_ID)
    if (keys.size === 0) return
    try {
      const found = await withDeadline(() => valid([...keys]), { timeout_ms: TIMEOUT_MS, what: 'D1' })
      // Only keys that were queried: a connection may have opened meanwhile.
      const gone = new Set([...keys].filter((key) => !found.has(key)))
      for (const some of this.#connections) some.end(gone)
    } catch (error) {
      warn({
        message: 'could not check the keys of open connections; the next check retries',
        scope,
        error,
      })
    }
  }
}

/**
 * The place after which a client gets entries. A place beyond the end is of another log, which may
 * have been deleted: nothing would come until this log is as long.
 */
export const placeIn = (asked: number, last: number): number => Math.min(asked, last)

type SocketsParts = {
  context: DurableObjectState
  log: Log
  hider: SecretHider
  now: () => number
  turns: { readonly current: { turn_id: string } | null }
  key_check: Pick<KeyCheck, 'used' | 'watch'>
  streams: { part(part: AnswerPart): void }
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
  #listens = false
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
      this.#add(socket, socket.deserializeAttachment() as Attachment)
      this.feed.follow(socket)
    }
  }

  /** Listens to the log from the first socket on. */
  #add(socket: WebSocket, attachment: Attachment): void {
    this.feed.add(socket, attachment)
    if (this.#listens) return
    this.#listens = true
    this.#parts.log.listen((entries) => this.#gather(entries))
  }

  get keys(): string[] {
    return this.feed.keys
  }

  /** True if the key of a sender has a socket that is not one of the dashboard. */
  hears(sender: string): boolean {
    return this.feed.hears(sender)
  }

  connect({ after: asked, ...connect }: Connect): Response {
    if (this.feed.size >= limits.sockets_per_scope) return new Response(null, { status: 503 })
    const { 0: client, 1: server } = new WebSocketPair()
    const { last } = this.#parts.log
    const after = asked === null ? null : placeIn(asked, last)
    const counts = { sent: 0, marked: 0, read: 0, closing: false }
    const attachment: Attachment = { ...connect, ...counts, cursor: after, live_after: last }
    this.#parts.context.acceptWebSocket(server)
    server.serializeAttachment(attachment)
    this.#add(server, attachment)
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
    if (this.feed.size === 0) return
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
    if (this.feed.size === 0) return
    this.#pushLater()
    this.#replies.push(delta)
  }

  /** Sends entries at the end of the task that wrote them, after its acknowledgements. */
  #gather(entries: readonly SocketEntry[]): void {
    if (this.feed.size === 0) return
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

/**
 * The state of a socket across hibernation. `cursor` is the last `seq` sent during catch-up.
 * `live_after` is the last entry it does not need. `sent`, `marked` and `read` count bytes: in all,
 * up to the last mark, and up to the last returned mark. `assumed`: up to where a client that has
 * never returned a mark is taken to have read. Sockets of an older version do not have it.
 */
export type Attachment = Omit<Connect, 'after'> & {
  cursor: number | null
  live_after: number
  sent: number
  marked: number
  read: number
  assumed?: number
  closing: boolean
}
type SocketFeedParts = { log: Log; now: () => number }

const PAGE = 500
/** The wait for a mark, from a client that has returned one before. */
const PATIENCE_MS = 30_000
/** The wait for the first mark, after which a client is taken to only read. */
const FIRST_MARK_MS = 1000
const CHECK_MS = 250
/** Answers that may be unread on a socket, however small its share of what may be is. */
const LEAST_ANSWERS = 4 * limits.mark_bytes

/**
 * Sends at the pace of the clients. The runtime buffers without a limit, so a mark that the client
 * returns follows every 64 kB. A socket with too much unread data waits for its mark, then catches
 * up from the log. Without a mark it is closed and may resume. A client that has never returned a
 * mark may only read: it is sent 4 MB a second, and closed when a client that reads nothing would
 * hold too much memory.
 */
export class SocketFeed {
  readonly #parts: SocketFeedParts
  readonly #attachments = new Map<WebSocket, Attachment>()
  readonly #of_keys = new Map<string, number>()
  readonly #catching = new Set<WebSocket>()
  /** Sockets that wait for a mark, with the time since when. */
  readonly #stalled = new Map<WebSocket, number>()
  #checking = false
  #turn: Promise<void> = Promise.resolve()

  constructor(parts: SocketFeedParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#attachments.size
  }

  get keys(): string[] {
    return Array.from(this.#attachments.values(), ({ key_id }) => key_id)
  }

  hears(sender: string): boolean {
    for (const { connection_id, key_id } of this.#attachments.values())
      if (connection_id !== WATCHER && senderOfKey(key_id) === sender) return true
    return false
  }

  of(socket: WebSocket): Attachment | undefined {
    const attachment = this.#attachments.get(socket)
    return attachment?.closing ? undefined : attachment
  }

  add(socket: WebSocket, attachment: Attachment): void {
    this.#countKey(attachment.key_id, 1)
    this.#attachments.set(socket, attachment)
  }

  #countKey(key_id: string, more: number): void {
    const count = (this.#of_keys.get(key_id) ?? 0) + more
    if (count > 0) this.#of_keys.set(key_id, count)
    else this.#of_keys.delete(key_id)
  }

  /** The bytes that may be unread on a socket: many sockets share what may be unread in all. */
  #window({ key_id }: Attachment): number {
    const share = Math.min(
      limits.unconfirmed_bytes / (this.#of_keys.get(key_id) ?? 1),
      limits.unconfirmed_bytes_per_scope / Math.max(1, this.#attachments.size),
    )
    return Math.max(limits.mark_bytes, Math.min(limits.unread_bytes, Math.floor(share)))
  }

  /** Catches up with the log, if the socket has a cursor. */
  follow(socket: WebSocket): void {
    void this.#catchUp(socket)
  }

  forget(socket: WebSocket): void {
    const attachment = this.#attachments.get(socket)
    if (attachment) this.#countKey(attachment.key_id, -1)
    this.#attachments.delete(socket)
    this.#stalled.delete(socket)
  }

  /** Sends at once, even if much is unread. Closes a socket that never reads. */
  deliver(socket: WebSocket, text: string): void {
    const attachment = this.of(socket)
    if (!attachment) return
    if (unread(attachment) >= Math.max(2 * this.#window(attachment), LEAST_ANSWERS)) return this.#close(socket, attachment)
    try {
      socket.send(text)
      attachment.sent += byteLength(text)
      if (attachment.sent - attachment.marked >= limits.mark_bytes) this.#mark(socket, attachment)
    } catch {
      // The socket is broken. Its client resumes with `?after=` when it reconnects.
      this.forget(socket)
      closeQuietly(socket)
    }
  }

  /** Sends to all sockets that have room. For text that is not in the log and may be dropped. */
  broadcast(text: string): void {
    for (const [socket, attachment] of this.#attachments) if (unread(attachment) < this.#window(attachment)) this.deliver(socket, text)
  }

  /** Sends new entries of the log to all sockets that have caught up with it. */
  push(entries: readonly SocketEntry[]): void {
    for (const [socket, attachment] of this.#attachments) {
      // A socket that is catching up reads these entries itself.
      if (attachment.cursor !== null) continue
      const news = entries.filter(({ seq }) => seq > attachment.live_after)
      let room = this.#window(attachment) - unread(attachment)
      const fits = news.filter(({ text }) => room > 0 && (room -= text.length) > Number.NEGATIVE_INFINITY)
      this.#deliverAll(socket, fits)
      const next = news[fits.length]
      if (!next) continue
      attachment.cursor = next.seq - 1
      this.follow(socket)
    }
  }

  #deliverAll(socket: WebSocket, entries: readonly SocketEntry[]): void {
    if (!this.#attachments.get(socket)?.units) return entries.forEach(({ text }) => this.deliver(socket, `{"type":"log","entry":${text}}`))
    let from = 0
    while (from < entries.length) {
      let bytes = 0
      // A mark can follow each frame only.
      const past = entries.findIndex(({ text }, place) => place >= from && (bytes += text.length) >= limits.mark_bytes)
      const end = past < 0 ? entries.length : past + 1
      this.deliver(
        socket,
        `{"type":"log","entries":[${entries
          .slice(from, end)
          .map(({ text }) => text)
          .join(',')}]}`,
      )
      from = end
    }
  }

  /** A mark came back: the client has read this many bytes. */
  seen(socket: WebSocket, bytes: number): void {
    const attachment = this.of(socket)
    if (!attachment || bytes <= attachment.read) return
    attachment.read = Math.min(bytes, attachment.marked)
    delete attachment.assumed
    socket.serializeAttachment(attachment)
    this.#stalled.delete(socket)
    if (attachment.cursor !== null) this.follow(socket)
  }

  /** Closes the sockets of deleted keys. */
  end(keys: ReadonlySet<string>, close: { code: number; reason: string }): void {
    for (const [socket, { key_id }] of this.#attachments) {
      if (!keys.has(key_id)) continue
      this.forget(socket)
      closeQuietly(socket, close)
    }
  }

  /** Page by page, yielding to other work. At the end of the log the socket is live. */
  async #catchUp(socket: WebSocket): Promise<void> {
    if (this.#catching.has(socket)) return
    this.#catching.add(socket)
    try {
      for (;;) {
        const attachment = this.of(socket)
        if (!attachment || attachment.cursor === null) return
        const room = this.#window(attachment) - unread(attachment)
        if (room <= 0) return this.#wait(socket)
        this.#page(socket, attachment, attachment.cursor, room)
        await this.#nextTurn()
      }
    } finally {
      this.#catching.delete(socket)
    }
  }

  /** Requests and events come between any two pages, however many sockets catch up. */
  #nextTurn(): Promise<void> {
    this.#turn = this.#turn.then(() => scheduler.wait(0))
    return this.#turn
  }

  #page(socket: WebSocket, attachment: Attachment, cursor: number, room: number): void {
    const entries = this.#parts.log.read(cursor, PAGE, undefined, room)
    this.#deliverAll(socket, entries)
    attachment.live_after = this.#parts.log.last
    attachment.cursor = entries.at(-1)?.seq ?? null
    if (this.of(socket)) socket.serializeAttachment(attachment)
  }

  #mark(socket: WebSocket, attachment: Attachment): void {
    attachment.marked = attachment.sent
    socket.send(JSON.stringify({ type: 'mark', sent: attachment.sent }))
    socket.serializeAttachment(attachment)
  }

  #wait(socket: WebSocket): void {
    if (!this.#stalled.has(socket)) this.#stalled.set(socket, this.#parts.now())
    if (this.#checking) return
    this.#checking = true
    setTimeout(() => this.#checkStalled(), CHECK_MS)
  }

  #checkStalled(): void {
    this.#checking = false
    for (const [socket, since] of this.#stalled) {
      const attachment = this.of(socket)
      if (!attachment) this.#stalled.delete(socket)
      else if (this.#parts.now() - since < patienceWith(attachment)) this.#wait(socket)
      else if (attachment.read === 0) this.#assumeRead(socket, attachment)
      else this.#close(socket, attachment)
    }
  }

  /** Continues to send without marks, while the bytes that may be unread are bounded. */
  #assumeRead(socket: WebSocket, attachment: Attachment): void {
    const unconfirmed = Array.from(this.#attachments).filter(([, { read }]) => read === 0)
    // A closing socket counts for its key, and not against others: its client may never read.
    const of_key = unconfirmed.filter(([, { key_id }]) => key_id === attachment.key_id)
    if (bytesSent(of_key) >= limits.unconfirmed_bytes) return this.#close(socket, attachment)
    const open = unconfirmed.filter(([, { closing }]) => !closing)
    const [most] = open.toSorted(([, left], [, right]) => right.sent - left.sent)
    if (most && bytesSent(open) >= limits.unconfirmed_bytes_per_scope) this.#close(...most)
    if (attachment.closing) return
    this.#stalled.delete(socket)
    attachment.assumed = Math.min(attachment.sent, (attachment.assumed ?? 0) + limits.assumed_bytes)
    socket.serializeAttachment(attachment)
    this.follow(socket)
  }

  /** The socket counts until it has closed: its unread data takes memory. */
  #close(socket: WebSocket, attachment: Attachment): void {
    this.#stalled.delete(socket)
    attachment.closing = true
    socket.serializeAttachment(attachment)
    closeQuietly(socket, tooFarBehind)
  }
}

const patienceWith = ({ read, assumed }: Attachment): number => {
  if (read > 0) return PATIENCE_MS
  return assumed === undefined ? FIRST_MARK_MS : 0
}
const bytesSent = (sockets: readonly [WebSocket, Attachment][]): number => sockets.reduce((sum, [, { sent }]) => sum + sent, 0)
const unread = ({ sent, read, assumed = 0 }: Attachment): number => sent - Math.max(read, assumed)
const SENDING_FAILED = { code: 1011, reason: 'sending failed' }

export function closeQuietly(socket: WebSocket, { code, reason } = SENDING_FAILED): void {
  try {
    socket.close(code, reason)
  } catch {
    // Already closed.
  }
}
