import { backoff, pauses, type Pauses } from '../base/backoff.ts'
import { messageOf } from '../base/error-text.ts'
import { isTransient } from '../base/faults.ts'
import { warn } from '../base/warn.ts'
import type { Alarm } from './alarm.ts'
import type { Database } from './unit.ts'

export type OutboxItem = { key: string; value: unknown }
/** Sends items, oldest first, to D1 or to an object. Idempotent. */
export type SendItems = (items: readonly OutboxItem[]) => Promise<void>
export type GivenUp = OutboxItem & { error: unknown; attempts: number }
export type Topic = {
  send: SendItems
  /** An item that fails holds up the later ones. */
  in_order?: true
  /** Items that are kept while none can be sent: the oldest are dropped. Unset: all. */
  most_waiting?: number
  /** Keeps an item for a person, in the transaction that deletes it here. Unset: none. */
  giveUp?: (item: GivenUp) => void
}
/**
 * State that is kept elsewhere. `due`: when it is sent; unset: with each flush. `changed`: it keeps
 * others from resting.
 */
type OutboxSource = { send: () => Promise<void>; due?: () => number | null; changed?: () => boolean; readonly waiting?: number }

export type OutboxPace = {
  /** Changes are gathered for this long. */
  gather_ms: number
  /** Items that are sent at a time. */
  most_items: number
  pauses: Pauses
  /**
   * The table has the columns `seq`, `failures` and `due_at`: an item that fails alone pauses
   * alone. An item that is put again while it is sent is sent again, although it says the same.
   */
  alone?: true
  /** The warning about what could not be sent. */
  failed: string
}

type Part = { send: (name: string) => Promise<void>; source?: OutboxSource; topic?: Topic }
/** `until`: no attempt is made before. `changed`: during a flush that may have missed it. */
type Lane = Part & { at: number | null; until: number; failures: number; error: string | null; changed: boolean }
type Row = { seq?: number; topic: string; key: string; value: string; failures: number }
type OutboxParts = {
  database: Pick<Database, 'laid' | 'all' | 'first'>
  alarm: Pick<Alarm, 'source' | 'by' | 'rearm'>
  now: () => number
  pace: OutboxPace
}

/** Attempts of an item that fails alone, within 18 minutes. */
const MOST_ATTEMPTS = 12

/**
 * Sends an object's state in the background to D1 or to other objects, which may be unavailable for
 * minutes. The transaction that changes the state puts it into a table, from which it is deleted
 * once it was sent; or a source reads it where it is kept. If the process dies in between, it is
 * sent again, which is idempotent. A topic or source that fails does not delay the others.
 */
export class Outbox {
  readonly #parts: OutboxParts
  /** By topic or source, and by recipient of a topic. */
  readonly #lanes = new Map<string, Lane>()
  readonly #flushing = new Map<string, Promise<void>>()
  /** The object has no data yet: a scope's first row lists it in D1. */
  #is_new: boolean
  /** Callers in whose time no alarm is set. */
  #unarmed = 0

  constructor(parts: OutboxParts) {
    this.#parts = parts
    this.#is_new = !parts.database.laid
    parts.alarm.source(() => this.#dueAt)
  }

  /** Registers state that is kept elsewhere. */
  source(name: string, source: OutboxSource): void {
    this.#add(name, { send: () => source.send(), source })
    if (source.waiting) this.soon(name, this.#parts.now())
  }

  /** Registers who sends the items of a topic. It may have a part per recipient, after a space. */
  topic(name: string, topic: Topic): void {
    if (this.#lanes.has(name)) throw new Error(`the outbox has the topic ${name} already: a feature takes a name of its own`)
    this.#add(name, { send: (part) => this.#sendItems(part, topic), topic })
    this.#find()
  }

  /** Finds the rows that wait, in case they are not from this process. */
  #find(): void {
    const { database, now, pace } = this.#parts
    const rows = `SELECT topic, ${pace.alone ? 'min(due_at)' : '0'} AS due_at FROM outbox GROUP BY topic`
    for (const { topic, due_at } of database.all<{ topic: string; due_at: number }>(rows)) {
      const lane = this.#laneOf(topic)
      if (lane && !this.#flushing.has(topic)) lane.at = Math.min(lane.at ?? Infinity, Math.max(lane.until, due_at, now()))
    }
  }

  /** Number of items, and of what sources have, that were not sent. */
  get waiting(): number {
    // Items of a feature that the deployment left out wait for it, and wake nobody.
    const sql = 'SELECT count(*) AS n FROM outbox WHERE topic IN (SELECT value FROM json_each(?))'
    const items = this.#parts.database.first<{ n: number }>(sql, JSON.stringify([...this.#lanes.keys()]))?.n ?? 0
    return Array.from(this.#lanes.values()).reduce((sum, { source }) => sum + (source?.waiting ?? 0), items)
  }

  get lastError(): string | null {
    return Array.from(this.#lanes.values()).find(({ error }) => error !== null)?.error ?? null
  }

  get due(): boolean {
    return (this.#dueAt ?? Infinity) <= this.#parts.now()
  }

  /** Sources with their own times wait for what is gathered, and for the end of a flush. */
  get #dueAt(): number | null {
    const sends = this.#flushing.size > 0
    const lanes = Array.from(this.#lanes.values()).filter(({ source }) => !sends || source?.due === undefined)
    const first = () => lanes.reduce((least, { at }) => Math.min(least, at ?? Infinity), Infinity)
    if (!sends && first() > this.#soon) for (const lane of lanes) askSource(lane)
    const at = first()
    return at === Infinity ? null : at
  }

  /** When what changes now is sent. */
  get #soon(): number {
    return this.#parts.now() + this.#parts.pace.gather_ms
  }

  /** Writes an item in the open transaction. It replaces one that waits under the key. */
  put(unit: Pick<Database, 'all'>, topic: string, key: string, value: unknown): void {
    unit.all('INSERT OR REPLACE INTO outbox (topic, "key", value) VALUES (?, ?, ?)', topic, key, JSON.stringify(value))
    this.soon(topic)
  }

  get<Value>(topic: string, key: string): Value | undefined {
    const row = this.#parts.database.first<{ value: string }>('SELECT value FROM outbox WHERE topic = ? AND "key" = ?', topic, key)
    return row && (JSON.parse(row.value) as Value)
  }

  /** Something has changed, and is sent with what changes meanwhile. */
  soon(name: string, at = this.#soon): void {
    const lane = this.#laneOf(name)
    if (!lane) return
    lane.changed = true
    if (!this.#flushing.has(name)) lane.at = Math.min(lane.at ?? Infinity, Math.max(lane.until, at))
  }

  /** The receiver answered: the pauses between retries start over. */
  reached(name: string): void {
    const lane = this.#lanes.get(name)
    if (lane) lane.failures = 0
  }

  /** Makes all pending changes due now, for the sweep. */
  hurry(): void {
    for (const [name, lane] of this.#lanes) {
      lane.until = 0
      this.soon(name, this.#parts.now())
    }
  }

  /** Sends a topic immediately. False if that failed; the items are retried with the rest. */
  async push(topic: string): Promise<boolean> {
    try {
      const lane = this.#laneOf(topic)
      if (!lane) throw new Error(`nobody sends the topic ${topic} of the outbox`)
      await lane.send(topic)
      return true
    } catch (error) {
      warn({ message: `${this.#parts.pace.failed}; will retry`, topic, error })
      return false
    }
  }

  /** Sets the alarm that the changes of a unit of work need. */
  arm(): void {
    if (this.#unarmed > 0) return
    if (this.#is_new) for (const name of this.#lanes.keys()) this.soon(name)
    this.#is_new = false
    const at = this.#dueAt
    if (at !== null) this.#parts.alarm.by(at)
  }

  /** Sets no alarm during work that its caller repeats if the object dies. */
  async unarmed<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#unarmed += 1
    try {
      return await work()
    } finally {
      this.#unarmed -= 1
      if (this.#parts.database.laid) this.arm()
    }
  }

  /** The changes of a lane reach the receiver in another way, and so does the first row. */
  rests(name: string): void {
    const lane = this.#lanes.get(name)
    const others_change = Array.from(this.#lanes.values()).some(({ source }) => source?.changed?.() === true)
    if (!lane || others_change || this.#flushing.has(name)) return
    Object.assign(lane, { at: null, changed: false })
    this.#is_new = false
  }

  /** Sends what is due `by` then, with the sources that have no times. Joins what is being sent. */
  async flush(by = this.#soon): Promise<void> {
    this.#find()
    const due = Array.from(this.#lanes).filter(([name, lane]) => {
      if (!this.#flushing.has(name)) askSource(lane)
      return (lane.at ?? (lane.source && !lane.source.due ? lane.until : Infinity)) <= by || this.#flushing.has(name)
    })
    await Promise.all(due.map(([name, lane]) => this.#flushing.get(name) ?? this.#flush(name, lane)))
    this.#parts.alarm.rearm()
  }

  #flush(name: string, lane: Lane): Promise<void> {
    lane.changed = false
    lane.at = null
    const sent = () => this.#sent(name, lane)
    // Once all are marked: what is sent now is no time at which the object is due.
    const flushing = Promise.resolve()
      .then(() => lane.send(name))
      .finally(() => this.#flushing.delete(name))
      .then(sent, (error: unknown) => this.#failed(name, lane, error))
    this.#flushing.set(name, flushing)
    return flushing
  }

  #sent(name: string, lane: Lane): void {
    Object.assign(lane, { until: 0, failures: 0, error: null })
    const rest = this.#restOf(name, lane)
    if (lane.changed || rest !== null) lane.at = Math.max(this.#soon, rest ?? 0)
    else if (name.includes(' ')) this.#lanes.delete(name)
  }

  #failed(name: string, lane: Lane, error: unknown): void {
    const { now, pace } = this.#parts
    lane.failures += 1
    lane.error = messageOf(error)
    const pause_ms = backoff(pace.pauses, lane.failures)
    lane.at = lane.until = now() + pause_ms
    warn({ message: `${pace.failed}; will retry`, topic: name, pause_ms, error })
    this.#dropOldest(name, lane.topic?.most_waiting)
  }

  async #sendItems(name: string, topic: Topic): Promise<void> {
    const { database, now, pace } = this.#parts
    const [columns, due, order] = pace.alone ? ['seq, failures', 'AND due_at <= ?3', 'seq'] : ['0 AS failures', '', '"key"']
    const sql = `SELECT topic, "key", value, ${columns} FROM outbox WHERE topic = ?1 ${due} ORDER BY ${order} LIMIT ?2`
    for (;;) {
      const rows = database.all<Row>(sql, name, pace.most_items, ...(pace.alone ? [now()] : []))
      if (rows.length === 0) return
      const failed = await failuresOf(topic, rows.map(itemOf), pace.alone)
      for (const row of rows) {
        if (failed.has(row.key)) this.#putOff(row, { topic, name, error: failed.get(row.key) })
        else this.#delete(row)
      }
    }
  }

  /** An item that fails alone has a pause of its own: the others of its topic do not wait. */
  #putOff(row: Row, { topic, name, error }: { topic: Topic; name: string; error: unknown }): void {
    const { database, now, pace } = this.#parts
    const attempts = row.failures + 1
    const given_up = topic.giveUp !== undefined && attempts >= MOST_ATTEMPTS
    warn({ message: `${pace.failed}; ${given_up ? 'a person must help' : 'will retry'}`, topic: name, key: row.key, attempts, error })
    if (!given_up) {
      const due_at = now() + backoff(pauses.message, attempts)
      database.all('UPDATE outbox SET failures = ?, due_at = ? WHERE seq = ?', attempts, due_at, row.seq ?? null)
    } else if (this.#delete(row)) topic.giveUp?.({ ...itemOf(row), error, attempts })
  }

  /** False if a newer item has replaced it. */
  #delete({ seq, topic, key, value }: Row): boolean {
    const where = seq === undefined ? 'topic = ? AND "key" = ? AND value = ?' : 'seq = ?'
    const row = seq === undefined ? [topic, key, value] : [seq]
    return this.#parts.database.all(`DELETE FROM outbox WHERE ${where} RETURNING "key"`, ...row).length > 0
  }

  #dropOldest(name: string, most: number | undefined): void {
    if (most === undefined) return
    const newest = 'SELECT seq FROM outbox WHERE topic = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2'
    const dropped = this.#parts.database.all(`DELETE FROM outbox WHERE topic = ?1 AND seq <= (${newest}) RETURNING "key"`, name, most)
    if (dropped.length > 0) warn({ message: `${this.#parts.pace.failed}; the oldest were dropped`, topic: name })
  }

  /** When the first item that is left is due; null if none is left. */
  #restOf(name: string, { source }: Lane): number | null {
    if (source || !this.#parts.pace.alone) return source?.waiting ? 0 : null
    return this.#parts.database.first<{ at: number | null }>('SELECT min(due_at) AS at FROM outbox WHERE topic = ?', name)?.at ?? null
  }

  #add(name: string, part: Part): Lane {
    const lane = { ...part, at: null, until: 0, failures: 0, error: null, changed: false }
    this.#lanes.set(name, lane)
    return lane
  }

  /** Null for a topic of a feature that the deployment left out. */
  #laneOf(name: string): Lane | null {
    const topic = this.#lanes.get(name.split(' ', 1)[0] ?? name)
    return this.#lanes.get(name) ?? (topic ? this.#add(name, topic) : null)
  }
}

function askSource(lane: Lane): void {
  const due = lane.source?.due?.() ?? null
  if (due !== null) lane.at = Math.min(lane.at ?? Infinity, Math.max(lane.until, due))
}

const itemOf = ({ key, value }: Row): OutboxItem => ({ key, value: JSON.parse(value) as unknown })

/**
 * Sends items, each alone if they fail together and may pause alone. Returns those that failed;
 * throws if none can be sent now.
 */
async function failuresOf(topic: Topic, items: readonly OutboxItem[], alone: boolean | undefined): Promise<ReadonlyMap<string, unknown>> {
  try {
    await topic.send(items)
    return new Map()
  } catch (error) {
    if (!alone || topic.in_order || isTransient(error)) throw error
    const [first, ...others] = items
    if (first && others.length === 0) return new Map([[first.key, error]])
  }
  const failed = new Map<string, unknown>()
  for (const item of items) for (const [key, error] of await failuresOf(topic, [item], alone)) failed.set(key, error)
  return failed
}
