import type { z } from 'zod'
import type { approval, ApprovalStatus } from '../src/contract/approval.ts'
import type { EventInput, EventRecord, loggedEvent, Outcome, OutcomeStatus } from '../src/contract/event-record.ts'
import type { LogEntry } from '../src/contract/log-entry.ts'
import type { Page } from '../src/contract/scope-api.ts'
import type { ContextView, ScopeState } from '../src/contract/scope.ts'
import type { Settings, SettingsPatch } from '../src/contract/settings/settings.ts'
import { apiOf, askOf, ReflexError, type AskApi, type ScopeOptions } from './api.ts'
import { ScopeLine, type Listener, type ScopeStatus } from './line.ts'
import type { Ack } from './socket.ts'

export type { Page } from '../src/contract/scope-api.ts'
export type { ScopeOptions } from './api.ts'
export type { Listener, ScopeStatus } from './line.ts'
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
    const look = () => {
      this.event(id).then(
        ({ status, attempts, error, outcome }) => isEnd(status) && resolve({ id, status, attempts, error, outcome }),
        // Not accepted yet, or not readable by this client: its entry in the log follows.
        (error: unknown) => error instanceof ReflexError || reject(error),
      )
    }
    const stop = this.#line.subscribe({
      onEntry: (entry) => {
        if (entry.kind !== 'event-ended') return
        const { status, attempts, error, outcome } = entry
        if (entry.event_ids.includes(id)) resolve({ id, status, attempts, error, outcome })
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
