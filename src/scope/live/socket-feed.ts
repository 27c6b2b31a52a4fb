import { byteLength } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import type { Connect } from '../../contract/scope-api.ts'
import { tooFarBehind } from '../../contract/too-far-behind.ts'
import { closeQuietly } from './close-quietly.ts'
import type { Log } from '../log.ts'

/**
 * What a socket is, across hibernation. `cursor` is set while it catches up with the log: the last `seq` that it was sent.
 * `live_after` is the last that it needs not be told any more. `sent`, `marked` and `read` count bytes: what it was sent, up
 * to the last mark, and up to the last mark that came back. `closing`: it was told so, and what it has not read is still kept.
 */
export type Attachment = Omit<Connect, 'after'> & {
  cursor: number | null
  live_after: number
  sent: number
  marked: number
  read: number
  closing: boolean
}
type Entry = { seq: number; text: string }
type Parts = { log: Log; now: () => number }

const PAGE = 500
/** For whoever has never sent a mark back, and for whoever has. */
const PATIENCE_MS = { unknown: 5000, known: 30_000 } as const
const LOOK_MS = 1000

/**
 * What sockets are sent, at the pace of their clients. Nothing else says how much of it has been read: the runtime keeps
 * whatever is sent, and a page more for each reader that does not read would be memory for ever. After every 64 kB a mark goes
 * out, which the client sends back; who is too far ahead of that waits, and catches up from the log. It is closed where no
 * mark comes: its client resumes where it was.
 */
export class SocketFeed {
  readonly #parts: Parts
  readonly #attachments = new Map<WebSocket, Attachment>()
  readonly #catching = new Set<WebSocket>()
  /** Since when they wait for a mark. */
  readonly #stalled = new Map<WebSocket, number>()
  #looking = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#attachments.size
  }

  /** The ids of their keys. */
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

  /** From its cursor on, if it has one. */
  follow(socket: WebSocket): void {
    void this.#catchUp(socket)
  }

  forget(socket: WebSocket): void {
    this.#attachments.delete(socket)
    this.#stalled.delete(socket)
  }

  /** Sends at once, whatever is unread, but for one that never reads. */
  deliver(socket: WebSocket, text: string): void {
    const attachment = this.of(socket)
    if (!attachment) return
    if (unread(attachment) >= 2 * limits.unread_bytes) return this.#close(socket, attachment)
    try {
      socket.send(text)
      attachment.sent += byteLength(text)
      if (attachment.sent - attachment.marked >= limits.mark_bytes) this.#mark(socket, attachment)
    } catch {
      // Gone, or as good as that: the client resumes by `?after=` when it comes back.
      this.forget(socket)
      closeQuietly(socket)
    }
  }

  /** To all that there is room for: for what is not in the log, and need not be. */
  say(text: string): void {
    for (const [socket, attachment] of this.#attachments) if (unread(attachment) < limits.unread_bytes) this.deliver(socket, text)
  }

  /** What the log has now, to all that have caught up with it. */
  tell(entries: readonly Entry[]): void {
    for (const [socket, attachment] of this.#attachments) {
      // One that catches up reads them itself, and one that has caught up meanwhile has read some.
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

  /** A mark came back: the client has read so many bytes. */
  seen(socket: WebSocket, bytes: number): void {
    const attachment = this.of(socket)
    if (!attachment || bytes <= attachment.read) return
    attachment.read = Math.min(bytes, attachment.marked)
    socket.serializeAttachment(attachment)
    this.#stalled.delete(socket)
    if (attachment.cursor !== null) this.follow(socket)
  }

  /** Ends the sockets of keys that were deleted. */
  end(keys: ReadonlySet<string>, close: { code: number; reason: string }): void {
    for (const [socket, { key_id }] of this.#attachments) {
      if (!keys.has(key_id)) continue
      this.forget(socket)
      closeQuietly(socket, close)
    }
  }

  /** Page by page, other work in between; live once it has seen the log's end. */
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
    if (this.#looking) return
    this.#looking = true
    setTimeout(() => this.#look(), LOOK_MS)
  }

  #look(): void {
    this.#looking = false
    for (const [socket, since] of this.#stalled) {
      const attachment = this.of(socket)
      const patience = attachment?.read === 0 ? PATIENCE_MS.unknown : PATIENCE_MS.known
      if (!attachment) this.#stalled.delete(socket)
      else if (this.#parts.now() - since >= patience) this.#close(socket, attachment)
      else this.#wait(socket)
    }
  }

  /** It stays among the connections until it is gone: until then what it has not read takes memory. */
  #close(socket: WebSocket, attachment: Attachment): void {
    this.#stalled.delete(socket)
    attachment.closing = true
    socket.serializeAttachment(attachment)
    closeQuietly(socket, tooFarBehind)
  }
}

const unread = ({ sent, read }: Attachment): number => sent - read
const frame = (entry: string): string => `{"type":"log","entry":${entry}}`
