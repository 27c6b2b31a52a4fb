import type { Event } from './event.ts'
import { eventStatements, type StatementSpan, type Statement } from './event-statements.ts'

export type Delivery<E extends Event = Event> = { event: E; ack_token: string; attempts: number }
export type Receipt = { id: string; scope: string; status: 'accepted' | 'duplicate' }
export type Subscription = { types?: readonly string[]; scope?: string; signal?: AbortSignal; lease_ms?: number }

/** Durable events: stored once, claimed by a lease, settled by `ack` or `nack`, kept for replay. */
export interface EventStore<E extends Event = Event> {
  /** Stores events. An event whose id exists in its scope is a duplicate and changes nothing. */
  publish(...events: E[]): Promise<Receipt[]>
  /** Claims events one by one until `signal` aborts. After `lease_ms` a claim expires. */
  subscribe(subscription?: Subscription): AsyncIterable<Delivery<E>>
  /** False if the token was already settled or its lease has passed to another consumer. */
  ack(token: string): Promise<boolean>
  nack(token: string, error?: string): Promise<boolean>
  /** History, oldest first; it changes nothing. `start` is inclusive, `end` exclusive, both ISO. */
  replay(span: StatementSpan): AsyncIterable<E>
}

type SqlRow = Record<string, unknown>
type Tuning = { max_attempts: number; poll_ms: number; now: () => number; random: () => number }
export type SqlEventStoreOptions = Partial<Tuning> & { run: (statement: Statement) => Promise<SqlRow[]>; table?: string }

/** An EventStore over D1, or over any SQLite that `run` executes statements on. */
export class SqlEventStore<E extends Event = Event> implements EventStore<E> {
  readonly #options: Tuning & Pick<SqlEventStoreOptions, 'run'>
  readonly #statements
  /** Subscribers that are polling or waiting. */
  readonly #subscribers = new Set<() => void>()
  readonly #wake = () => this.#subscribers.forEach((wake) => wake())

  constructor({ table, ...options }: SqlEventStoreOptions) {
    this.#options = { max_attempts: 3, poll_ms: 1000, now: Date.now, random: Math.random, ...options }
    this.#statements = eventStatements(table)
  }

  async publish(...events: E[]): Promise<Receipt[]> {
    const rows = await this.#options.run(this.#statements.publish(events, this.#options.now()))
    this.#wake()
    const fresh = new Set(rows.map((row) => `${String(row['scope'])} ${String(row['id'])}`))
    // The second of two equal ids in one call is a duplicate.
    return events.map(({ id, scope }) => ({ id, scope, status: fresh.delete(`${scope} ${id}`) ? 'accepted' : 'duplicate' }))
  }

  async *subscribe({ types, scope, signal, lease_ms = 30_000 }: Subscription = {}): AsyncGenerator<Delivery<E>> {
    const { run, now, max_attempts, poll_ms } = this.#options
    signal?.addEventListener('abort', this.#wake)
    for (;;) {
      if (signal?.aborted) return
      // Register first, so that events published during the poll wake it, too.
      const { promise: woken, resolve: wake } = Promise.withResolvers<void>()
      this.#subscribers.add(wake)
      await run(this.#statements.expire({ now: now(), max_attempts, jitter: 0 }))
      // Claims one event at a time: a lease covers one event's work, not the wait behind others.
      const ack_token = `${crypto.randomUUID()}:`
      const [row] = await run(this.#statements.claim({ ack_token, now: now(), lease_ms, limit: 1, types, scope }))
      // Poll again: another process may publish, or a retry come due.
      const timer = row ? undefined : setTimeout(wake, poll_ms)
      if (!row) await woken
      clearTimeout(timer)
      this.#subscribers.delete(wake)
      if (row) yield toDelivery<E>(row)
    }
  }

  async ack(token: string): Promise<boolean> {
    return (await this.#options.run(this.#statements.ack([token], this.#options.now()))).length > 0
  }

  async nack(token: string, error = 'not acknowledged'): Promise<boolean> {
    const { run, now, random, max_attempts } = this.#options
    return (await run(this.#statements.nack({ ack_tokens: [token], error, max_attempts, now: now(), jitter: random() }))).length > 0
  }

  async *replay(span: StatementSpan): AsyncGenerator<E> {
    // With milliseconds, as in events: `…00Z` would sort after `…00.000Z`.
    const exact = { ...span, start: new Date(span.start).toISOString(), end: span.end && new Date(span.end).toISOString() }
    for (let after = { timestamp: '', seq: 0 }; ;) {
      const rows = await this.#options.run(this.#statements.replay(exact, after, 100))
      for (const row of rows) yield JSON.parse(String(row['payload']))
      const last = rows.at(-1)
      if (!last) return
      after = { timestamp: String(last['timestamp']), seq: Number(last['seq']) }
    }
  }
}

export function toDelivery<E extends Event>({ payload, ack_token, attempts }: SqlRow): Delivery<E> {
  return { event: JSON.parse(String(payload)), ack_token: String(ack_token), attempts: Number(attempts) }
}
