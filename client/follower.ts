import type { LogEntry } from '../src/contract/log-entry.ts'
import type { Ack } from './outgoing.ts'

/**
 * A piece of a turn's answer while it is produced, or a reflex's answer to an event. `from: 0`: the
 * whole answer so far, after a new connection. The authoritative answer is the later entry
 * `reply-sent`.
 */
export type Delta = { turn_id: string; content: string; from?: 0 } | { turn_id: null; event_id: string; content: string }
/** Frames that are no part of the log. */
export type AnswerFrame =
  | ({ type: 'ack' } & Ack)
  | ({ type: 'delta' } & Delta)
  | { type: 'error'; id?: string; errors: { path: string; message: string }[] }
type Frame = { type: 'open'; seq: number } | { type: 'log'; entries: LogEntry[] } | { type: 'mark'; sent: number } | AnswerFrame
/** Why there is no connection: an attempt failed, or the socket was closed with a code. */
export type Loss = { error: Error } | { code: number; reason: string }
export type FollowOptions = {
  /** The last `seq` seen. Null: the log is followed from the time of `onOpen`. */
  after: number | null
  /** The address of the next connection, with a ticket of its own. */
  address: (after: number | null) => Promise<string>
  onOpen?: (() => void) | undefined
  onEntry?: ((entry: LogEntry) => void) | undefined
  onAnswer?: (frame: AnswerFrame) => void
  /** Another connection follows, unless this calls `end`. */
  onLost: (loss: Loss) => void
}

const PING_MS = 20_000
const OPENING_MS = 10_000
const FIRST_MS = 300
const LONGEST_MS = 10_000

/** Follows a scope's log over any number of connections, without a gap or a duplicate. */
export class Follower {
  readonly #options: FollowOptions
  readonly #pulse = setInterval(() => this.#beat(), PING_MS)
  #last_seq: number | null
  #socket: WebSocket | null = null
  #isOpen = false
  #isOver = false
  #heard = true
  #tries = 0
  #opening: ReturnType<typeof setTimeout> | undefined
  #pause: ReturnType<typeof setTimeout> | undefined

  constructor(options: FollowOptions) {
    this.#options = options
    this.#last_seq = options.after
    void this.#connect()
  }

  get last_seq(): number | null {
    return this.#last_seq
  }

  /** Sends if the position in the log is known: what is handled earlier could be logged unheard. */
  send(text: string): void {
    if (this.#isOpen) this.#socket?.send(text)
  }

  /** Ends the pause before the next attempt. */
  retry(): void {
    if (this.#pause === undefined) return
    clearTimeout(this.#pause)
    this.#pause = undefined
    void this.#connect()
  }

  end(): void {
    this.#isOver = true
    clearInterval(this.#pulse)
    clearTimeout(this.#pause)
    const socket = this.#socket
    // Browsers report an error if a socket is closed while it opens.
    if (socket?.readyState === WebSocket.CONNECTING) {
      this.#socket = null
      socket.addEventListener('open', () => socket.close())
    }
    this.#drop()
  }

  async #connect(): Promise<void> {
    try {
      const address = await this.#options.address(this.#last_seq)
      if (!this.#isOver) this.#listen(new WebSocket(address))
    } catch (error) {
      this.#lost({ error: error instanceof Error ? error : new Error(String(error)) })
    }
  }

  #listen(socket: WebSocket): void {
    this.#socket = socket
    this.#heard = true
    this.#opening = setTimeout(() => this.#lost({ error: new Error('the connection took too long to open') }), OPENING_MS)
    socket.addEventListener('message', ({ data }) => socket === this.#socket && this.#receive(String(data)))
    socket.addEventListener('close', ({ code, reason }) => socket === this.#socket && this.#lost({ code, reason }))
  }

  #receive(text: string): void {
    this.#heard = true
    if (text === 'pong') return
    const frame: Frame = JSON.parse(text)
    if (frame.type === 'open') return this.#opened(frame.seq)
    // Sent back once everything before it was read: the scope sends only a limited amount ahead.
    if (frame.type === 'mark') return this.#socket?.send(text)
    if (frame.type !== 'log') return this.#options.onAnswer?.(frame)
    for (const entry of frame.entries) {
      if (this.#last_seq !== null && entry.seq <= this.#last_seq) continue
      this.#last_seq = entry.seq
      this.#options.onEntry?.(entry)
    }
  }

  #opened(seq: number): void {
    clearTimeout(this.#opening)
    // An earlier place than this client had means that the scope has a new log.
    if (this.#last_seq === null || seq < this.#last_seq) this.#last_seq = seq
    this.#tries = 0
    this.#isOpen = true
    this.#options.onOpen?.()
  }

  /** A connection can be dead without being closed: if no ping is answered, open a new one. */
  #beat(): void {
    if (!this.#isOpen) return
    if (this.#heard) {
      this.#heard = false
      return this.#socket?.send('ping')
    }
    this.#lost({ error: new Error('the connection answers no more') })
    this.retry()
  }

  #lost(loss: Loss): void {
    if (this.#isOver) return
    this.#drop()
    this.#options.onLost(loss)
    if (this.#isOver) return
    const pause_ms = Math.min(LONGEST_MS, FIRST_MS * 1.7 ** this.#tries)
    this.#tries += 1
    // Clients that lost the same server do not come back at the same moment.
    this.#pause = setTimeout(() => this.retry(), pause_ms * (0.75 + Math.random() / 2))
  }

  #drop(): void {
    clearTimeout(this.#opening)
    this.#isOpen = false
    const socket = this.#socket
    this.#socket = null
    socket?.close()
  }
}
