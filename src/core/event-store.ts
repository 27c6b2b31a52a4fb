import type { Event } from './event.ts'
import { eventStatements, type Span, type Statement } from './event-statements.ts'

export type Delivery<E extends Event = Event> = { event: E; ack_token: string; attempts: number }
export type Receipt = { id: string; scope: string; status: 'accepted' | 'duplicate' }
export type Subscription = { types?: readonly string[]; signal?: AbortSignal; lease_ms?: number }

/** Durable events: stored once, claimed under a lease, settled by `ack` or `nack`, kept for replay. */
export interface EventStore<E extends Event = Event> {
  /** Stores events; one whose id its scope has already is a duplicate and changes nothing. */
  publish(...events: E[]): Promise<Receipt[]>
  /** Claims events one by one until `signal` aborts. A claim not settled within `lease_ms` goes to the next subscriber. */
  subscribe(subscription?: Subscription): AsyncIterable<Delivery<E>>
  /** False where the token was settled already or its lease has passed to another. */
  ack(token: string): Promise<boolean>
  nack(token: string, error?: string): Promise<boolean>
  /** History, oldest first; it changes nothing. `start` is inclusive, `end` exclusive, both ISO in UTC. */
  replay(span: Span): AsyncIterable<E>
}

type Row = Record<string, unknown>
export type SqlEventStoreOptions = {
  run: (statement: Statement) => Promise<Row[]>
  table?: string
  max_attempts?: number
  poll_ms?: number
  now?: () => number
  random?: () => number
}

const PAGE = 100

/** The one EventStore: over D1, a Durable Object's SQLite, or any SQLite that `run` reaches. */
export class SqlEventStore<E extends Event = Event> implements EventStore<E> {
  readonly #options: Required<Omit<SqlEventStoreOptions, 'table'>>
  readonly #statements
  #wake = Promise.withResolvers<void>()

  constructor({ table, ...options }: SqlEventStoreOptions) {
    this.#options = { max_attempts: 3, poll_ms: 1000, now: Date.now, random: Math.random, ...options }
    this.#statements = eventStatements(table)
  }

  async publish(...events: E[]): Promise<Receipt[]> {
    const rows = await this.#options.run(this.#statements.publish(events, this.#options.now()))
    this.#wake.resolve()
    const fresh = new Set(rows.map((row) => `${String(row['scope'])} ${String(row['id'])}`))
    // The second of two equal ids in one call finds its key taken already.
    return events.map(({ id, scope }) => ({ id, scope, status: fresh.delete(`${scope} ${id}`) ? 'accepted' : 'duplicate' }))
  }

  async *subscribe({ types, signal, lease_ms = 30_000 }: Subscription = {}): AsyncGenerator<Delivery<E>> {
    const { run, now, max_attempts } = this.#options
    while (!signal?.aborted) {
      this.#wake = Promise.withResolvers()
      await run(this.#statements.expire(now(), max_attempts))
      // One at a time, so that a lease covers one event's work and not the wait behind the others of a page.
      const [row] = await run(this.#statements.claim({ ack_token: `${crypto.randomUUID()}:`, now: now(), lease_ms, limit: 1, types }))
      if (row) yield toDelivery<E>(row)
      else await this.#published(signal)
    }
  }

  async ack(token: string): Promise<boolean> {
    return (await this.#options.run(this.#statements.ack([token], this.#options.now()))).length > 0
  }

  async nack(token: string, error = 'not acknowledged'): Promise<boolean> {
    const { run, now, random, max_attempts } = this.#options
    const rows = await run(this.#statements.nack({ ack_token: token, error, max_attempts, now: now(), jitter: random() }))
    return rows.length > 0
  }

  async *replay(span: Span): AsyncGenerator<E> {
    let after = { timestamp: '', seq: 0 }
    for (;;) {
      const rows = await this.#options.run(this.#statements.replay(span, after, PAGE))
      for (const row of rows) yield JSON.parse(String(row['payload'])) as E
      const last = rows.at(-1)
      if (!last || rows.length < PAGE) return
      after = { timestamp: String(last['timestamp']), seq: Number(last['seq']) }
    }
  }

  /** Until something is published here, or another process may have published. */
  async #published(signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.#options.poll_ms)
    signal?.addEventListener('abort', () => resolve(), { once: true })
    await Promise.race([promise, this.#wake.promise])
    clearTimeout(timer)
  }
}

export const toDelivery = <E extends Event>(row: Row): Delivery<E> => ({
  event: JSON.parse(String(row['payload'])) as E,
  ack_token: String(row['ack_token']),
  attempts: Number(row['attempts']),
})
