import type { EventInput, EventStatus, Outcome } from '../../src/contract/event-record.ts'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import type { ScopeState } from '../../src/contract/scope.ts'
import type { Approval, LoggedEvent, Scope, ScopeStatus } from '../scope.ts'
import type { Ack } from '../socket.ts'

export type ScopeEvent = {
  id: string
  type: string
  source: string
  at: string
  status: EventStatus
  error: string | null
  outcome: Outcome | null
  /** The event itself: at once if it was sent from here, else once it was read. */
  event: EventInput | { content: string } | LoggedEvent['event'] | null
}
export type ScopeView = {
  status: ScopeStatus
  /** The last failure, such as a role that the key lacks. Null after the next success. */
  error: Error | null
  /** The newest events, oldest first. */
  events: readonly ScopeEvent[]
  /** The newest entries of the log, oldest first. */
  log: readonly LogEntry[]
  /** The answer of the turn in flight so far. */
  streaming: string
  state: ScopeState | null
  approvals: readonly Approval[]
}
export type ScopeActions = {
  send: (event: EventInput | { content: string; id?: string }) => Promise<Ack>
  /** Cancels the turn in flight, durably. Leaving the page does not. */
  stop: (reason?: string) => Promise<void>
  respond: (approval_id: string, decision: 'approve' | 'reject', reason?: string) => Promise<void>
}

const MOST = { events: 200, log: 500 }
const HISTORY = 100
/** Looks for the content of an event, a second apart: D1 follows the scope. */
const MOST_LOOKS = 10
/** Requests at most so often, however much is written. */
const EVERY_MS = 1000

const FRAME_MS = 16

/** The state of a scope outside React. It follows the scope while it has listeners. */
export class ScopeStore {
  readonly #scope: Scope
  readonly #listeners = new Set<() => void>()
  readonly #events = new Map<string, ScopeEvent>()
  readonly #sent = new Map<string, EventInput | { content: string }>()
  /** Ids of events whose content was not read yet, with the looks for it. */
  readonly #unread = new Map<string, number>()
  #log: LogEntry[] = []
  #streaming = { turn_id: '', text: '' }
  #view: ScopeView
  #leave: (() => void) | null = null
  /** The last entry that was taken: listeners that return continue there. */
  #last: number | null = null
  #is_due = false
  #next: ScopeView | null = null
  #wants = { state: true, approvals: true }
  #asking = false
  readonly actions: ScopeActions

  constructor(scope: Scope) {
    this.#scope = scope
    this.#view = { status: scope.status, error: null, events: [], log: [], streaming: '', state: null, approvals: [] }
    this.actions = {
      send: (event) => this.#send(event),
      stop: async (reason) => void (await scope.cancel(reason)),
      respond: async (approval_id, decision, reason) => {
        await scope.respond(approval_id, decision, reason)
        this.#wants.approvals = true
        await this.#ask()
      },
    }
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#follow()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#leave?.()
      this.#leave = null
    }
  }

  readonly view = (): ScopeView => this.#view

  #send(event: EventInput | { content: string; id?: string }): Promise<Ack> {
    const id = event.id ?? crypto.randomUUID()
    this.#sent.set(id, event)
    const [oldest] = this.#sent.keys()
    if (this.#sent.size > MOST.events && oldest !== undefined) this.#sent.delete(oldest)
    return this.#scope.send({ ...event, id })
  }

  /** Follows from where the socket is, then also reads the newest entries before. */
  #follow(): void {
    const join = (after: number | undefined) =>
      this.#scope.subscribe({
        after,
        onEntry: (entry) => this.#take(entry),
        onDelta: (delta) => {
          if (delta.turn_id === null) return
          const so_far = delta.from === 0 || this.#streaming.turn_id !== delta.turn_id ? '' : this.#streaming.text
          this.#streaming = { turn_id: delta.turn_id, text: so_far + delta.content }
          this.#changed({})
        },
        onError: (error) => this.#changed({ error }),
        onStatus: (status, error) => this.#became(status, error, join),
      })
    this.#leave = join(this.#last ?? undefined)
    this.#became(this.#scope.status, undefined, join)
  }

  #became(status: ScopeStatus, error: Error | undefined, join: (after: number) => () => void): void {
    const { last_seq } = this.#scope
    if (status === 'live' && this.#last === null && last_seq !== null && this.#leave) {
      this.#last = Math.max(0, last_seq - HISTORY)
      const leave = this.#leave
      this.#leave = join(this.#last)
      leave()
    }
    this.#changed({ status, error: error ?? (status === 'live' ? null : this.#view.error) })
    if (status === 'live') {
      this.#wants = { state: true, approvals: true }
      void this.#ask()
    }
  }

  #take(entry: LogEntry): void {
    if (this.#last === null || entry.seq <= this.#last) return
    this.#last = entry.seq
    this.#log.push(entry)
    if (this.#log.length > 2 * MOST.log) this.#log = this.#log.slice(-MOST.log)
    this.#noteEvents(entry)
    if (entry.kind === 'turn-ended' && entry.turn_id === this.#streaming.turn_id) this.#streaming = { turn_id: '', text: '' }
    this.#wants.state = true
    if (entry.kind.startsWith('approval-')) this.#wants.approvals = true
    this.#changed({})
    void this.#ask()
  }

  #noteEvents(entry: LogEntry): void {
    for (const id of entry.event_ids) {
      const known = this.#events.get(id)
      if (entry.kind === 'event-accepted') {
        const { event_type: type, source, at } = entry
        const event = this.#sent.get(id) ?? null
        if (event === null) this.#unread.set(id, 0)
        this.#events.set(id, { id, type, source, at, status: 'pending', error: null, outcome: null, event })
        const [oldest] = this.#events.keys()
        if (this.#events.size > MOST.events && oldest !== undefined) this.#forget(oldest)
      } else if (known && entry.kind === 'turn-started') this.#events.set(id, { ...known, status: 'processing' })
      else if (known && entry.kind === 'event-retried') this.#events.set(id, { ...known, status: 'pending', error: entry.error })
      else if (known && entry.kind === 'event-reopened') this.#events.set(id, { ...known, status: 'pending' })
      else if (known && entry.kind === 'event-ended') {
        const { status, error, outcome } = entry
        this.#events.set(id, { ...known, status, error, outcome })
      }
    }
  }

  #forget(id: string): void {
    this.#events.delete(id)
    this.#unread.delete(id)
  }

  /** Reads events that others sent: the log names them without their content. */
  async #readEvents(): Promise<void> {
    for (const [id, looks] of this.#unread) {
      if (looks < MOST_LOOKS) this.#unread.set(id, looks + 1)
      else this.#unread.delete(id)
    }
    for (const { id, event } of await this.#scope.events({ limit: MOST.events })) {
      const known = this.#events.get(id)
      if (this.#unread.delete(id) && known) this.#events.set(id, { ...known, event })
    }
    this.#changed({})
  }

  /** Reads what the log only hints at. One request at a time, at most once a second. */
  async #ask(): Promise<void> {
    if (this.#asking) return
    this.#asking = true
    while (this.#leave && (this.#wants.state || this.#wants.approvals || this.#unread.size > 0)) {
      const wants = this.#wants
      this.#wants = { state: false, approvals: false }
      try {
        if (wants.state) this.#changed({ state: await this.#scope.state() })
        if (wants.approvals) this.#changed({ approvals: await this.#scope.approvals() })
        if (this.#unread.size > 0) await this.#readEvents()
      } catch (error) {
        this.#changed({ error: error instanceof Error ? error : new Error(String(error)) })
      }
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
    }
    this.#asking = false
  }

  #changed(part: Partial<ScopeView>): void {
    Object.assign((this.#next ??= { ...this.#view }), part)
    if (this.#is_due) return
    this.#is_due = true
    // A burst of entries renders once.
    setTimeout(() => {
      this.#is_due = false
      const log = this.#log.slice(-MOST.log)
      this.#view = { ...this.#view, ...this.#next, log, events: Array.from(this.#events.values()), streaming: this.#streaming.text }
      this.#next = null
      for (const listener of this.#listeners) listener()
    }, FRAME_MS)
  }
}

const stores = new WeakMap<Scope, ScopeStore>()

/** Each scope object has a single store, so that all components share its socket and its log. */
export function storeOf(scope: Scope): ScopeStore {
  const known = stores.get(scope) ?? new ScopeStore(scope)
  stores.set(scope, known)
  return known
}
