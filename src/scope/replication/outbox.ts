import type { ApprovalRequest } from '../../contract/approval.ts'
import { messageOf } from '../../base/error-text.ts'
import { warn } from '../../base/warn.ts'
import { insertApproval, recordApprovedRuns } from '../../store/approvals.ts'
import type { Alarm } from '../upkeep/alarm.ts'
import type { Database } from '../storage/database.ts'
import type { EventReplica } from './event-replica.ts'
import type { Unit } from '../storage/unit.ts'

/** How long changes gather before they are replicated: D1's log follows within about a second. */
const GATHER_MS = 800
const LONGEST_PAUSE_MS = 30_000
const MOST_ITEMS = 50

/** What a scope replicates beside its events: rows of the table `outbox`, each kept until D1 has it. */
export type Topic = 'approvals' | 'approved-runs'
type Item = { key: string; value: string }
type Topics = Record<Topic, (items: readonly Item[]) => Promise<void>>

/** How each topic gets into D1. Repeated, an item changes nothing. */
export const topicsOf = (db: D1Database): Topics => ({
  approvals: async (items) => {
    for (const { value } of items) await insertApproval(db, JSON.parse(value) as ApprovalRequest)
  },
  'approved-runs': (items) =>
    recordApprovedRuns(
      db,
      items.map(({ key, value }) => ({ approval_id: key, run: value })),
    ),
})

type Parts = {
  database: Database
  alarm: Alarm
  now: () => number
  events: Pick<EventReplica, 'waiting' | 'send' | 'resetBackoff' | 'onChange'>
  topics: Topics
  /** What is replicated along with the rest and kept elsewhere: sums that only grow. */
  sources: readonly (() => Promise<void>)[]
}

/**
 * The one way by which a scope's state reaches D1, behind the scope's back: D1 may be away for minutes, and nothing here waits for it.
 * Events are replicated from the log (`EventReplica`). All else is put into a table by the unit of work that changes it, and deleted once
 * D1 has it. If the process dies in between, it is replicated again, which changes nothing.
 */
export class Outbox {
  readonly #parts: Parts
  #due: number | null
  #flushing: Promise<void> | null = null
  /** Something changed during a flush, and may have come too late for it. */
  #changed = false
  /** The scope has written nothing yet: its first row puts it into D1's list. */
  #is_new: boolean
  #failures = 0
  #error: string | null = null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#is_new = !parts.database.laid
    this.#due = this.waiting > 0 ? parts.now() : null
    parts.alarm.source(() => this.#due)
    parts.events.onChange(() => this.#soon())
    // Events that D1 took prove that it is not away.
    parts.events.resetBackoff(() => (this.#failures = 0))
  }

  /** How much D1 does not have: events, or entries of the log that name them, and items. */
  get waiting(): number {
    const items = this.#parts.database.first<{ n: number }>('SELECT count(*) AS n FROM outbox')?.n ?? 0
    return this.#parts.events.waiting + items
  }

  get lastError(): string | null {
    return this.#error
  }

  get due(): boolean {
    return this.#due !== null && this.#due <= this.#parts.now()
  }

  /** Replicates the value under its key, in the place of one that still waits there. */
  put(unit: Unit, topic: Topic, key: string, value: unknown): void {
    const text = JSON.stringify(value)
    unit.all(`INSERT INTO outbox (topic, "key", value) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET value = ?3`, topic, key, text)
    this.#soon()
  }

  has(topic: Topic, key: string): boolean {
    return this.#parts.database.first('SELECT 1 AS one FROM outbox WHERE topic = ? AND "key" = ?', topic, key) !== undefined
  }

  /** Makes everything that waits due now: the sweep asks for it. */
  hurry(): void {
    if (!this.#flushing) this.#due = this.#parts.now()
  }

  /** Replicates what waits under this topic at once. Returns whether D1 took it; if not, it is retried with the rest. */
  async push(topic: Topic): Promise<boolean> {
    try {
      await this.#sendItems(topic)
      return true
    } catch (error) {
      warn({ message: 'failed to replicate to D1; will retry', topic, error })
      return false
    }
  }

  /** After a unit of work: sets the alarm that its changes need. */
  arm(): void {
    if (this.#is_new) this.#soon()
    this.#is_new = false
    if (this.#due !== null) this.#parts.alarm.by(this.#due)
  }

  /** Replicates all that waits. A flush that is under way is joined. */
  flush(): Promise<void> {
    return (this.#flushing ??= this.#flush().finally(() => (this.#flushing = null)))
  }

  #soon(): void {
    this.#changed = true
    if (this.#due === null && !this.#flushing) this.#due = this.#parts.now() + GATHER_MS
  }

  /** What fails does not hold up the rest. */
  async #flush(): Promise<void> {
    const { alarm, now, events, topics, sources } = this.#parts
    this.#changed = false
    this.#due = null
    const failed: unknown[] = []
    const attempt = async (work: () => Promise<unknown>) => work().catch((error: unknown) => void failed.push(error))
    await attempt(() => events.send())
    for (const topic of Object.keys(topics) as Topic[]) await attempt(() => this.#sendItems(topic))
    for (const send of sources) await attempt(send)
    if (failed.length === 0) {
      this.#failures = 0
      this.#error = null
      if (this.#changed || this.waiting > 0) this.#due = now() + GATHER_MS
    } else {
      this.#failures += 1
      this.#error = messageOf(failed[0])
      const pause_ms = Math.min(LONGEST_PAUSE_MS, 1000 * 2 ** (this.#failures - 1))
      warn({ message: 'failed to replicate to D1; will retry', pause_ms, error: this.#error })
      this.#due = now() + pause_ms
    }
    alarm.rearm()
  }

  async #sendItems(topic: Topic): Promise<void> {
    const { database, topics } = this.#parts
    for (;;) {
      const items = database.all<Item>('SELECT "key", value FROM outbox WHERE topic = ? ORDER BY rowid LIMIT ?', topic, MOST_ITEMS)
      if (items.length === 0) return
      await topics[topic](items)
      for (const { key, value } of items) database.all('DELETE FROM outbox WHERE topic = ? AND "key" = ? AND value = ?', topic, key, value)
    }
  }
}
