import type { EventInput } from '../src/contract/event-record.ts'
import type { LogEntry } from '../src/contract/log-entry.ts'
import { ReflexError, type ScopeOptions } from './api.ts'
import { connectScope, type Ack, type Connection, type Delta } from './socket.ts'

/**
 * `reconnecting`: it was live before. `closed`: the key was refused, or `close` was called, which
 * ends all subscriptions.
 */
export type ScopeStatus = 'idle' | 'connecting' | 'live' | 'reconnecting' | 'closed'
export type Listener = {
  /** The last `seq` seen. Without it, the log is followed from now on. */
  after?: number | undefined
  onEntry?: (entry: LogEntry) => void
  onDelta?: (delta: Delta) => void
  /** `error`: why it was closed. */
  onStatus?: (status: ScopeStatus, error?: Error) => void
  /** A connection failed, or the scope refused a message. It reconnects by itself. */
  onError?: (error: Error) => void
}
/** `waiting`: live entries that wait until the earlier ones were read. */
type Seat = { listener: Listener; last: number; waiting: LogEntry[] | null; release: () => void }

/** Keeps the socket open between an unmount and the next mount. */
const LINGER_MS = 3000
const AGAIN_MS = 2000

/** The one socket of a scope's client: opened on first use, shared, and closed after the last. */
export class ScopeLine {
  readonly #options: ScopeOptions
  readonly #replay: (after: number) => AsyncIterable<LogEntry>
  readonly #seats = new Set<Seat>()
  #connection: Connection | null = null
  #opened = Promise.withResolvers<void>()
  #users = 0
  #linger: ReturnType<typeof setTimeout> | undefined
  status: ScopeStatus = 'idle'

  constructor(options: ScopeOptions, replay: (after: number) => AsyncIterable<LogEntry>) {
    this.#options = options
    this.#replay = replay
  }

  get last_seq(): number | null {
    return this.#connection?.last_seq ?? null
  }

  subscribe(listener: Listener): () => void {
    const { after } = listener
    const isFirst = this.#connection === null
    const seat: Seat = { listener, last: after ?? -1, waiting: null, release: this.#use(after) }
    this.#seats.add(seat)
    if (!isFirst && after !== undefined && after !== this.last_seq) void this.#catchUp(seat)
    return () => {
      if (this.#seats.delete(seat)) seat.release()
    }
  }

  send(event: EventInput | { content: string; id?: string }): Promise<Ack> {
    const release = this.#use()
    const sent = this.#connection?.send(event) ?? Promise.reject(new Error('the connection was closed'))
    return sent.finally(release)
  }

  close(): void {
    clearTimeout(this.#linger)
    this.#connection?.close()
  }

  #use(after?: number): () => void {
    clearTimeout(this.#linger)
    this.#users += 1
    if (this.#connection === null) this.#open(after)
    return () => {
      this.#users -= 1
      if (this.#users > 0) return
      clearTimeout(this.#linger)
      this.#linger = setTimeout(() => this.close(), LINGER_MS)
    }
  }

  #open(after: number | undefined): void {
    this.#opened = Promise.withResolvers()
    this.#become('connecting')
    this.#connection = connectScope({
      ...this.#options,
      ...(after !== undefined && { after }),
      onEntry: (entry) => this.#seats.forEach((seat) => take(seat, entry)),
      onDelta: (delta) => this.#seats.forEach(({ listener }) => listener.onDelta?.(delta)),
      onError: (error) => this.#seats.forEach(({ listener }) => listener.onError?.(error)),
      onOpen: () => {
        this.#opened.resolve()
        this.#become('live')
      },
      onClose: (ended) => {
        if (!ended) return this.status === 'connecting' ? undefined : this.#become('reconnecting')
        this.#connection = null
        this.#become(this.#users === 0 ? 'idle' : 'closed', ended)
        for (const { release } of this.#seats) release()
        this.#seats.clear()
      },
    })
  }

  #become(status: ScopeStatus, error?: Error): void {
    if (this.status === status) return
    this.status = status
    for (const { listener } of this.#seats) listener.onStatus?.(status, error)
  }

  /**
   * Reads the entries that the socket is already past. Entries after the position at which it was
   * opened arrive live, so reading to the end of the log leaves no gap.
   */
  async #catchUp(seat: Seat): Promise<void> {
    seat.waiting = []
    await this.#opened.promise
    while (this.#seats.has(seat)) {
      try {
        for await (const entry of this.#replay(seat.last)) deliver(seat, entry)
        break
      } catch (error) {
        seat.listener.onError?.(error instanceof Error ? error : new Error(String(error)))
        // Refused: a retry cannot succeed, and without the earlier entries there would be a gap.
        if (error instanceof ReflexError && error.status < 500 && error.status !== 429) return
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
    for (const entry of seat.waiting) deliver(seat, entry)
    seat.waiting = null
  }
}

const take = (seat: Seat, entry: LogEntry): void => (seat.waiting ? void seat.waiting.push(entry) : deliver(seat, entry))

function deliver(seat: Seat, entry: LogEntry): void {
  if (entry.seq <= seat.last) return
  seat.last = entry.seq
  seat.listener.onEntry?.(entry)
}
