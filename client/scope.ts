import type { z } from 'zod'
import type { approval, ApprovalStatus } from '../src/contract/approval.ts'
import type { EventInput, EventRecord, loggedEvent, Outcome, OutcomeStatus } from '../src/contract/event-record.ts'
import type { LogEntry } from '../src/contract/log-entry.ts'
import type { Page } from '../src/contract/scope-api.ts'
import type { ContextView, ScopeState } from '../src/contract/scope.ts'
import type { Settings, SettingsPatch } from '../src/contract/settings/settings.ts'
import { apiOf, askOf, ReflexError, type AskApi, type ScopeOptions } from './api.ts'
import { type Ack, connectScope, type Connection, type Delta } from './socket.ts'

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
class ScopeLine {
  readonly #options: ScopeOptions
  readonly #replay: (after: number) => AsyncIterable<LogEntry>
  readonly #seats = new Set<Seat>()
  #connection: Connection | null = null
  #opened = Promise.withResolvers<void>()
  #users = 0
  /** The `seq` at which the last connection broke, or at which the first was to begin. */
  #place: number | null = null
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
    this.#place = after ?? null
    this.#become('connecting')
    this.#connection = connectScope({
      ...this.#options,
      ...(after !== undefined && { after }),
      onEntry: (entry) => this.#seats.forEach((seat) => take(seat, entry)),
      onDelta: (delta) => this.#seats.forEach(({ listener }) => listener.onDelta?.(delta)),
      onError: (error) => this.#seats.forEach(({ listener }) => listener.onError?.(error)),
      onOpen: () => {
        this.#rewind()
        this.#opened.resolve()
        this.#become('live')
      },
      onClose: (ended) => {
        this.#place = this.last_seq
        if (!ended) return this.status === 'connecting' ? undefined : this.#become('reconnecting')
        this.#connection = null
        this.#become(this.#users === 0 ? 'idle' : 'closed', ended)
        for (const { release } of this.#seats) release()
        this.#seats.clear()
      },
    })
  }

  /** Lets all seats hear a log that replaced the one before: its entries have lower numbers. */
  #rewind(): void {
    const last = this.last_seq
    if (last === null || this.#place === null || last >= this.#place) return
    for (const seat of this.#seats) seat.last = Math.min(seat.last, last)
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

export type { Page } from '../src/contract/scope-api.ts'
export type { ScopeOptions } from './api.ts'
export type Approval = z.infer<typeof approval>
/** An event as the log of all scopes has it. */
export type LoggedEvent = z.infer<typeof loggedEvent>
export type EventEnd = { id: string; status: OutcomeStatus; attempts: number; error: string | null; outcome: Outcome | null }

const PAGE = 500

/**
 * A scope as its clients see it. All subscribers share one socket, which is open while somebody
 * subscribes, sends or waits.
 */
export class Scope {
  readonly name: string
  readonly #ask: AskApi
  readonly #line: ScopeLine

  constructor(options: ScopeOptions) {
    this.name = options.scope
    this.#ask = askOf(apiOf(options))
    this.#line = new ScopeLine(options, (after) => this.replay({ after }))
  }

  get status(): ScopeStatus {
    return this.#line.status
  }

  /** The `seq` of the last entry that the socket brought. */
  get last_seq(): number | null {
    return this.#line.last_seq
  }

  /**
   * Follows the log across lost connections, each entry once and in order: the entries after
   * `after`, or from now on. Returns the function that ends it.
   */
  subscribe(listener: Listener): () => void {
    return this.#line.subscribe(listener)
  }

  /** Resolves when the event is durable. It is sent again, under its id, until it is. */
  send(event: EventInput | { content: string; id?: string }): Promise<Ack> {
    return this.#line.send(event)
  }

  /** Waits for the end of an event that was sent. */
  outcome(id: string, { signal }: { signal?: AbortSignal } = {}): Promise<EventEnd> {
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<EventEnd>()
    /** `heard`: the end in the log, which does not have the result of the turn. */
    const look = (heard?: EventEnd) => {
      this.event(id).then(
        ({ status, attempts, error, outcome }) =>
          isEnd(status) ? resolve({ id, status, attempts, error, outcome }) : heard && resolve(heard),
        // Not accepted yet, or not readable by this client: its entry in the log follows.
        (error: unknown) => (heard ? resolve(heard) : error instanceof ReflexError || reject(error)),
      )
    }
    const stop = this.#line.subscribe({
      onEntry: (entry) => {
        if (entry.kind !== 'event-ended') return
        const { status, attempts, error, outcome } = entry
        if (entry.event_ids.includes(id)) look({ id, status, attempts, error, outcome })
        else if (entry.event_count !== undefined) look()
      },
      onStatus: (status, error) => {
        if (status === 'live') look()
        if (status === 'closed') reject(error ?? new Error(`the connection to ${this.name} was closed`))
      },
    })
    const abort = () => reject(signal?.reason)
    signal?.addEventListener('abort', abort)
    if (this.status === 'live') look()
    return promise.finally(() => {
      signal?.removeEventListener('abort', abort)
      stop()
    })
  }

  /** The log after `after`, up to its current end. */
  async *replay({ after = 0 }: { after?: number } = {}): AsyncGenerator<LogEntry> {
    for (let next: string | null = String(after); next !== null;) {
      const page: Page<LogEntry> = await this.#ask('get /v1/scopes/{scope}/log', { scope: this.name, after: next, limit: PAGE })
      yield* page.items
      next = page.next_cursor
    }
  }

  state(): Promise<ScopeState> {
    return this.#ask('get /v1/scopes/{scope}', { scope: this.name })
  }

  /** The DecisionContext now, or as it was after the entry `at`. */
  context(query: { at?: number; limit?: number; cursor?: string } = {}): Promise<ContextView> {
    return this.#ask('get /v1/scopes/{scope}/context', { ...query, scope: this.name })
  }

  /** The newest events with their content, newest first, about a second behind the scope. */
  async events(query: { limit?: number; type?: string } = {}): Promise<LoggedEvent[]> {
    const page = await this.#ask<Page<LoggedEvent>>('get /v1/events', { ...query, scope: this.name })
    return page.items
  }

  event(id: string): Promise<EventRecord> {
    return this.#ask('get /v1/scopes/{scope}/events/{id}', { scope: this.name, id })
  }

  async configure(patch: SettingsPatch): Promise<Settings> {
    const { settings } = await this.#ask<{ settings: Settings }>('patch /v1/scopes/{scope}', { ...patch, scope: this.name })
    return settings
  }

  /** Cancels the turn in flight, durably. Its events end as `cancelled`. */
  cancel(reason?: string): Promise<{ cancelled: boolean; turn_id: string | null; events: number }> {
    return this.#ask('post /v1/scopes/{scope}/cancel', { scope: this.name, reason })
  }

  async approvals(status: ApprovalStatus = 'pending'): Promise<Approval[]> {
    const page = await this.#ask<Page<Approval>>('get /v1/approvals', { scope: this.name, status })
    return page.items
  }

  respond(approval_id: string, decision: 'approve' | 'reject', reason?: string): Promise<Approval> {
    return this.#ask(`post /v1/approvals/{id}/${decision}`, { id: approval_id, reason })
  }

  /** A one-time ticket for a client without a key, such as a browser. Valid for 60 s. */
  ticket(): Promise<{ ticket: string; expires_at: string }> {
    return this.#ask('post /v1/scopes/{scope}/tickets', { scope: this.name })
  }

  /** Closes the socket. What is not acknowledged yet fails. A later use opens it again. */
  close(): void {
    this.#line.close()
  }
}

const isEnd = (status: string): status is OutcomeStatus => ['completed', 'ignored', 'dead_lettered', 'cancelled'].includes(status)
