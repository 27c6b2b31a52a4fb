import { withinTime } from '../../base/deadline.ts'
import type { End, Failed, Failure, SettledEvent } from './inbox.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Outcome } from '../../contract/event-record.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import { eventHead } from '../log/spans.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

type SettlementParts = Pick<Reflexes, 'inbox' | 'memory' | 'settings' | 'random' | 'features'> & {
  waiters: Waiters
}

/** Ends or requeues events: writes storage, the log and counters, and notifies waiters (G1). */
export class Settlement {
  readonly #parts: SettlementParts

  constructor(parts: SettlementParts) {
    this.#parts = parts
  }

  end(unit: Unit, seqs: readonly number[], how: End): number {
    if (seqs.length === 0) return 0
    const rows = this.#parts.inbox.end(unit, seqs, how)
    this.ended(unit, rows, how)
    return rows.length
  }

  /** Records events that the inbox ended. */
  ended(unit: Unit, rows: readonly SettledEvent[], how: End): void {
    const { memory, waiters, features } = this.#parts
    const { status, outcome, leaves = false } = how
    const seqs = rows.map(({ seq }) => seq)
    const left = memory.ended(unit, seqs, leaves || status === 'cancelled' || status === 'dead_lettered')
    if (outcome.by !== 'turn' && outcome.by !== 'reflex') for (const feature of features) feature.eventsDecided?.(unit, rows, null)
    unit.log(...endedEntries(rows, how, left))
    unit.count({ [status]: rows.length })
    waiters.settled(rows.map(({ id }) => id))
  }

  /** Adds the retry policy, the time and jitter to a failure. */
  failure(unit: Unit, error: string, log_seq?: number): Failure {
    const { settings, random } = this.#parts
    const { max_attempts, backoff_ms, max_backoff_ms } = settings().retry
    return { error, max_attempts, backoff_ms, max_backoff_ms, now: unit.now, jitter: random(), ...(log_seq !== undefined && { log_seq }) }
  }

  /** Records events that the inbox requeued or dead-lettered. */
  failed(unit: Unit, rows: readonly Failed[], { error, log_seq }: Pick<Failure, 'error' | 'log_seq'>): void {
    if (rows.length === 0) return
    const { memory, waiters, features } = this.#parts
    const dead = rows.filter(({ status }) => status === 'dead_lettered')
    memory.ended(
      unit,
      dead.map(({ seq }) => seq),
      true,
    )
    for (const feature of features) feature.eventsDecided?.(unit, dead, null)
    unit.log(...failedEntries(rows, { by: 'failure', reason: error, ...(log_seq !== undefined && { log_seq }) }))
    unit.count({ dead_lettered: dead.length, retried: rows.length - dead.length })
    waiters.settled(dead.map(({ id }) => id))
    for (const { status, due_at } of rows) if (status === 'pending') unit.wakeBy(due_at)
  }
}

/** `left`: the places of those that left the context. */
const endedEntries = (rows: readonly SettledEvent[], { status, outcome, error = null }: End, left: readonly number[] = []): NewEntry[] => {
  const gone = new Set(left)
  return rows.map((row) => ({
    ...eventHead(row),
    kind: 'event-ended',
    status,
    attempts: row.attempts,
    outcome,
    error,
    ...(gone.has(row.seq) && { left: true }),
  }))
}

/** Log entries for failed events, retried or dead-lettered. */
const failedEntries = (rows: readonly Failed[], outcome: Extract<Outcome, { by: 'failure' }>): NewEntry[] =>
  rows.map((row) => {
    const { reason: error } = outcome
    const { attempts } = row
    return row.status === 'pending'
      ? { ...eventHead(row), kind: 'event-retried', attempts, error, due_at: new Date(row.due_at).toISOString() }
      : { ...eventHead(row), kind: 'event-ended', status: 'dead_lettered', attempts, outcome, error }
  })

/**
 * Callers that wait for outcomes (`?wait=outcome`), in memory only: after a crash they ask again.
 */
export class Waiters {
  readonly #waiting = new Set<{ ids: Set<string>; done: () => void }>()

  settled(ids: readonly string[]): void {
    for (const waiter of this.#waiting) {
      for (const id of ids) waiter.ids.delete(id)
      if (waiter.ids.size === 0) waiter.done()
    }
  }

  /** Resolves to true once all `ids` have settled, or false at the timeout. */
  async wait(ids: ReadonlySet<string>, timeout_ms: number): Promise<boolean> {
    if (ids.size === 0) return true
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiter = { ids: new Set(ids), done: resolve }
    this.#waiting.add(waiter)
    const within = await withinTime(() => promise, { timeout_ms })
    this.#waiting.delete(waiter)
    return within.ended === 'done'
  }
}
