import type { Agent } from '../../agent/define-agent.ts'
import { setReflexState } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { backoff, pauses } from '../../base/backoff.ts'
import { messageOf } from '../../base/error-text.ts'
import { warn } from '../../base/warn.ts'
import type { ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Env } from '../../env.ts'
import { storeOf } from '../../store/store.ts'
import type { Alarm } from '../upkeep/alarm.ts'
import type { Guard } from '../upkeep/guard.ts'
import type { Database, Unit, UnitOfWork } from '../storage/unit.ts'
import type { EventReplica } from './event-replica.ts'

/** Changes are batched for this long before they are replicated: D1 lags by about a second. */
const GATHER_MS = 800
const MOST_ITEMS = 50

/**
 * A version's new state, if D1 has it in the state `from`. `since`: when that state was set, as far
 * as the scope knew; null if that is unknown.
 */
export type ReflexMove = {
  id: string
  version: number
  from: ReflexState
  state: ReflexState
  reason: string
  by_proof: boolean
  since: number | null
}
/** Ends the reasons of the moves of a scope. */
export const inScope = (scope: string): string => ` (in scope ${scope})`
type OutboxItem = { key: string; value: string }
/** Writes items to D1 or to an object. Idempotent. */
export type SendItems = (items: readonly OutboxItem[]) => Promise<void>

type TopicParts = {
  env: Env
  scope: string
  now: () => number
  features: readonly { readonly moved?: (version: ReflexVersion) => Promise<void> }[]
}

/** The topics of the engine: rows of the table `outbox`, which are kept until they are sent. */
export function topicsOf({ env, scope, now, features }: TopicParts): Record<string, SendItems> {
  const db = storeOf(env)
  return {
    'reflex-moves': async (items) => {
      for (const { value } of items) {
        const { since, ...move } = JSON.parse(value) as ReflexMove
        const by = inScope(scope)
        const moved = await setReflexState(db, {
          ...move,
          reason: move.reason + by,
          unless: since === null ? null : { since, by },
          now: now(),
        })
        await notifyScopes(env, move.id, scope)
        // If a feature fails, the move is sent again, and changes nothing else.
        if (moved.ok) for (const feature of features) await feature.moved?.(moved.version)
      }
    },
    'released-keys': async (items) => {
      for (const { key, value } of items) await env.GLOBAL_KEYS.getByName(key).release(JSON.parse(value) as string)
    },
  }
}

type Reported = {
  scope: string
  database: Database
  settings: Settings
  agent: Agent
  inbox: { readonly open: number }
  guard: Guard
}

/** The scope's row in D1, beside what its model does. */
export const reportOf = ({ scope, database, settings, agent, inbox, guard }: Reported) => ({
  scope,
  agent: agent.name,
  open: inbox.open,
  turn_since: database.read<{ since: number } | null>('turn', null)?.since ?? null,
  parked: guard.count,
  learns: settings.learning.mode === 'off' ? (0 as const) : (1 as const),
  spans_exported: 0,
  spans_dropped: 0,
})

/** `due`: when it has to be sent although nothing else changes. */
export type OutboxSource = { send: () => Promise<void>; due?: () => number | null }

type OutboxParts = {
  database: Database
  alarm: Alarm
  now: () => number
  events: Pick<EventReplica, 'waiting' | 'send' | 'resetBackoff' | 'onChange'>
  topics: Readonly<Record<string, SendItems>>
}

/**
 * Replicates a scope's state to D1 in the background: D1 may be unavailable for minutes, and the
 * scope never waits for it. Events are replicated from the log (`EventReplica`). All other state is
 * put into a table by the unit of work that changes it, and deleted once D1 has it. If the process
 * dies in between, it is replicated again, which is idempotent.
 */
export class Outbox {
  readonly #parts: OutboxParts
  readonly #sources: OutboxSource[] = []
  readonly #topics: Map<string, SendItems>
  #due: number | null
  #flushing: Promise<void> | null = null
  /** Something changed during a flush that may have missed it. */
  #changed = false
  /** The scope has no data yet: its first row lists it in D1. */
  #is_new: boolean
  #failures = 0
  #error: string | null = null

  constructor(parts: OutboxParts) {
    this.#parts = parts
    this.#is_new = !parts.database.laid
    this.#topics = new Map(Object.entries(parts.topics))
    this.#due = this.waiting > 0 ? parts.now() : null
    parts.alarm.source(() => this.#dueAt)
    parts.events.onChange(() => this.#soon())
    // D1 answered, so the pauses between retries start over.
    parts.events.resetBackoff(() => (this.#failures = 0))
  }

  /** Registers state that is replicated with the rest but kept elsewhere, or at its own times. */
  source(source: OutboxSource): void {
    this.#sources.push(source)
  }

  /** Registers who sends the items of a topic. Events have no topic. */
  topic(name: string, send: SendItems): void {
    if (this.#topics.has(name)) throw new Error(`the outbox has the topic ${name} already: a feature takes a name of its own`)
    this.#topics.set(name, send)
    if (this.waiting > 0) this.#due ??= this.#parts.now()
  }

  /** Number of events (or of log entries that name them) and items that D1 does not have. */
  get waiting(): number {
    // Items of a feature that the deployment left out wait for it, and wake nobody.
    const sql = 'SELECT count(*) AS n FROM outbox WHERE topic IN (SELECT value FROM json_each(?))'
    const items = this.#parts.database.first<{ n: number }>(sql, JSON.stringify([...this.#topics.keys()]))?.n ?? 0
    return this.#parts.events.waiting + items
  }

  get lastError(): string | null {
    return this.#error
  }

  get due(): boolean {
    return this.#dueAt !== null && this.#dueAt <= this.#parts.now()
  }

  /** Sources with their own times wait for the next flush, or for the end of a pause. */
  get #dueAt(): number | null {
    if (this.#due !== null || this.#flushing) return this.#due
    const times = this.#sources.map((source) => source.due?.() ?? null).filter((at) => at !== null)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Replicates the value under its key; replaces a value that still waits under the key. */
  put(unit: Unit, topic: string, key: string, value: unknown): void {
    const text = JSON.stringify(value)
    unit.all(`INSERT INTO outbox (topic, "key", value) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET value = ?3`, topic, key, text)
    this.#soon()
  }

  get<Value>(topic: string, key: string): Value | undefined {
    const row = this.#parts.database.first<{ value: string }>('SELECT value FROM outbox WHERE topic = ? AND "key" = ?', topic, key)
    return row && (JSON.parse(row.value) as Value)
  }

  /** Makes all pending changes due now, for the sweep. */
  hurry(): void {
    if (!this.#flushing) this.#due = this.#parts.now()
  }

  /** Replicates a topic immediately. False if D1 failed; the items are retried with the rest. */
  async push(topic: string): Promise<boolean> {
    try {
      await this.#sendItems(topic, this.#topics.get(topic))
      return true
    } catch (error) {
      warn({ message: 'failed to replicate to D1; will retry', topic, error })
      return false
    }
  }

  /** Sets the alarm that the changes of a unit of work need. */
  arm(): void {
    if (this.#is_new) this.#soon()
    this.#is_new = false
    const at = this.#dueAt
    if (at !== null) this.#parts.alarm.by(at)
  }

  /** Replicates all pending changes. Joins a flush that is running. */
  flush(unit: UnitOfWork): Promise<void> {
    return (this.#flushing ??= this.#flush(unit).finally(() => (this.#flushing = null)))
  }

  #soon(): void {
    this.#changed = true
    if (this.#due === null && !this.#flushing) this.#due = this.#parts.now() + GATHER_MS
  }

  /** Attempts every part, even if others fail. */
  async #flush(unit: UnitOfWork): Promise<void> {
    const { alarm, now, events } = this.#parts
    this.#changed = false
    this.#due = null
    // `#flushing` is set once this yields. Before that, a report would name the times of sources
    // that this flush sends, and the next report would correct them: a second write per event.
    await Promise.resolve()
    const failed: unknown[] = []
    const attempt = async (work: () => Promise<unknown>) => work().catch((error: unknown) => void failed.push(error))
    await attempt(() => events.send(unit))
    for (const [topic, send] of this.#topics) await attempt(() => this.#sendItems(topic, send))
    for (const { send } of this.#sources) await attempt(send)
    if (failed.length === 0) {
      this.#failures = 0
      this.#error = null
      if (this.#changed || this.waiting > 0) this.#due = now() + GATHER_MS
    } else {
      this.#failures += 1
      this.#error = messageOf(failed[0])
      const pause_ms = backoff(pauses.replication, this.#failures)
      warn({ message: 'failed to replicate to D1; will retry', pause_ms, error: this.#error })
      this.#due = now() + pause_ms
    }
    alarm.rearm()
  }

  async #sendItems(topic: string, send: SendItems | undefined): Promise<void> {
    if (!send) throw new Error(`nobody sends the topic ${topic} of the outbox`)
    const { database } = this.#parts
    for (;;) {
      const items = database.all<OutboxItem>('SELECT "key", value FROM outbox WHERE topic = ? ORDER BY "key" LIMIT ?', topic, MOST_ITEMS)
      if (items.length === 0) return
      await send(items)
      for (const { key, value } of items) database.all('DELETE FROM outbox WHERE topic = ? AND "key" = ? AND value = ?', topic, key, value)
    }
  }
}
