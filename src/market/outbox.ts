import { warn } from '../base/warn.ts'
import type { Env } from '../env.ts'

export type Item = { key: string; value: unknown }
/** The function that sends the messages of a topic, oldest first. Sending is idempotent. */
export type Topics = Readonly<Record<string, (items: readonly Item[], env: Env) => Promise<void>>>
/** Thrown by a topic that has sent all items but these, which are retried. */
export class SentInPart extends Error {
  readonly keys: ReadonlySet<string>

  constructor(keys: ReadonlySet<string>, cause: unknown) {
    super(`not sent: ${[...keys].join(', ')}`, { cause })
    this.keys = keys
  }
}
/** State that is sent from tables of its own, up to a mark that it keeps. */
export type Source = { readonly waiting: boolean; send: (env: Env) => Promise<void> }

/** Messages are gathered for this long. */
const GATHER_MS = 50
const MOST_ITEMS = 100
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

/**
 * Messages of the Ledger to D1 and to scopes. A message is written by the transaction that makes it
 * necessary, and deleted once it is sent. If the process dies in between it is sent again.
 */
export class Outbox {
  readonly #sql: SqlStorage
  readonly #topics: Topics
  readonly #sources: Readonly<Record<string, Source>>
  /** By topic or source: one that fails does not delay the others. */
  readonly #pauses = new Map<string, { failures: number; until: number }>()

  constructor(sql: SqlStorage, topics: Topics, sources: Readonly<Record<string, Source>>) {
    this.#sql = sql
    this.#topics = topics
    this.#sources = sources
  }

  /** Writes a message in the open transaction. It replaces one that waits under the key. */
  put(topic: string, key: string, value: unknown): void {
    const text = JSON.stringify(value)
    this.#sql.exec('INSERT INTO outbox (topic, "key", value) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET value = ?3', topic, key, text)
  }

  /** When the next message is to be sent; null if none waits. */
  dueAt(now: number): number | null {
    const times = this.#waiting.map((name) => this.#pauses.get(name)?.until ?? now + GATHER_MS)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Sends what waits and is not paused. */
  async flush(env: Env, now: number): Promise<void> {
    const due = this.#waiting.filter((name) => (this.#pauses.get(name)?.until ?? 0) <= now)
    await Promise.all(due.map((name) => this.#attempt(name, env, now)))
  }

  get #waiting(): string[] {
    const topics = this.#sql.exec<{ topic: string }>('SELECT DISTINCT topic FROM outbox').toArray()
    const sources = Object.keys(this.#sources).filter((name) => this.#sources[name]?.waiting)
    return [...topics.map(({ topic }) => topic), ...sources]
  }

  async #attempt(name: string, env: Env, now: number): Promise<void> {
    try {
      await (this.#sources[name]?.send(env) ?? this.#sendTopic(name, env))
      this.#pauses.delete(name)
    } catch (error) {
      const failures = (this.#pauses.get(name)?.failures ?? 0) + 1
      const pause_ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
      this.#pauses.set(name, { failures, until: now + pause_ms })
      warn({ message: 'the ledger failed to send; will retry', topic: name, pause_ms, error })
    }
  }

  async #sendTopic(topic: string, env: Env): Promise<void> {
    // A topic may have a part for each recipient, after a space.
    const send = this.#topics[topic.split(' ', 1)[0] ?? topic]
    if (!send) throw new Error(`no function sends the topic ${topic}`)
    let failure: SentInPart | null = null
    for (let last = -1; ;) {
      const rows = this.#rowsAfter(topic, last)
      const items = rows.map(({ key, value }) => ({ key, value: JSON.parse(value) as unknown }))
      if (rows.length === 0) break
      const failed: SentInPart | null = await send(items, env).then(() => null, inPart)
      const sent = rows.filter(({ key }) => failed?.keys.has(key) !== true)
      // A message that was replaced meanwhile is sent again.
      for (const { seq, value } of sent) this.#sql.exec('DELETE FROM outbox WHERE seq = ? AND value = ?', seq, value)
      failure ??= failed
      last = failed ? (rows.at(-1)?.seq ?? last) : last
    }
    if (failure) throw failure
  }

  #rowsAfter(topic: string, seq: number): { seq: number; key: string; value: string }[] {
    const rows = 'SELECT seq, "key", value FROM outbox WHERE topic = ? AND seq > ? ORDER BY seq LIMIT ?'
    return this.#sql.exec<{ seq: number; key: string; value: string }>(rows, topic, seq, MOST_ITEMS).toArray()
  }
}

function inPart(error: unknown): SentInPart {
  if (error instanceof SentInPart) return error
  throw error
}
