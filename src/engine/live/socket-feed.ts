import { byteLength } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import { type Connect, tooFarBehind } from '../../contract/scope-api.ts'
import type { Log } from '../log/log.ts'

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
type FedEntry = { seq: number; text: string }
type SocketFeedParts = { log: Log; now: () => number }

const PAGE = 500
/** The wait for a mark, from a client that has returned one before. */
const PATIENCE_MS = 30_000
const CHECK_MS = 250

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
  readonly #catching = new Set<WebSocket>()
  /** Sockets that wait for a mark, with the time since when. */
  readonly #stalled = new Map<WebSocket, number>()
  #checking = false

  constructor(parts: SocketFeedParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#attachments.size
  }

  get keys(): string[] {
    return Array.from(this.#attachments.values(), ({ key_id }) => key_id)
  }

  of(socket: WebSocket): Attachment | undefined {
    const attachment = this.#attachments.get(socket)
    return attachment?.closing ? undefined : attachment
  }

  add(socket: WebSocket, attachment: Attachment): void {
    this.#attachments.set(socket, attachment)
  }

  /** Catches up with the log, if the socket has a cursor. */
  follow(socket: WebSocket): void {
    void this.#catchUp(socket)
  }

  forget(socket: WebSocket): void {
    this.#attachments.delete(socket)
    this.#stalled.delete(socket)
  }

  /** Sends at once, even if much is unread. Closes a socket that never reads. */
  deliver(socket: WebSocket, text: string): void {
    const attachment = this.of(socket)
    if (!attachment) return
    if (unread(attachment) >= 2 * limits.unread_bytes) return this.#close(socket, attachment)
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
    for (const [socket, attachment] of this.#attachments) if (unread(attachment) < limits.unread_bytes) this.deliver(socket, text)
  }

  /** Sends new entries of the log to all sockets that have caught up with it. */
  push(entries: readonly FedEntry[]): void {
    for (const [socket, attachment] of this.#attachments) {
      // A socket that is catching up reads these entries itself.
      if (attachment.cursor !== null) continue
      for (const { seq, text } of entries) {
        if (seq <= attachment.live_after) continue
        if (unread(attachment) < limits.unread_bytes) {
          this.deliver(socket, frame(text))
          continue
        }
        attachment.cursor = seq - 1
        this.follow(socket)
        break
      }
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
        const room = limits.unread_bytes - unread(attachment)
        if (room <= 0) return this.#wait(socket)
        this.#page(socket, attachment, attachment.cursor, room)
        await scheduler.wait(0)
      }
    } finally {
      this.#catching.delete(socket)
    }
  }

  #page(socket: WebSocket, attachment: Attachment, cursor: number, room: number): void {
    const entries = this.#parts.log.read(cursor, PAGE, undefined, room)
    for (const { text } of entries) this.deliver(socket, frame(text))
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
      else if (attachment.read === 0) this.#assumeRead(socket, attachment)
      else if (this.#parts.now() - since >= PATIENCE_MS) this.#close(socket, attachment)
      else this.#wait(socket)
    }
  }

  /** Continues to send without marks, while the bytes that may be unread are bounded. */
  #assumeRead(socket: WebSocket, attachment: Attachment): void {
    const others = Array.from(this.#attachments.values()).filter((other) => other.read === 0)
    const unconfirmed = others.reduce((sum, { sent }) => sum + sent, 0)
    if (attachment.sent >= limits.unconfirmed_bytes || unconfirmed >= limits.unconfirmed_bytes_per_scope)
      return this.#close(socket, attachment)
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

const unread = ({ sent, read, assumed = 0 }: Attachment): number => sent - Math.max(read, assumed)
const frame = (entry: string): string => `{"type":"log","entry":${entry}}`
const SENDING_FAILED = { code: 1011, reason: 'sending failed' }

export function closeQuietly(socket: WebSocket, { code, reason } = SENDING_FAILED): void {
  try {
    socket.close(code, reason)
  } catch {
    // Already closed.
  }
}
