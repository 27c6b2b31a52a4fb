import { backoff, pauses } from '../../base/backoff.ts'
import { isTransient } from '../../base/faults.ts'
import { warn } from '../../base/warn.ts'
import type { Env } from '../../env.ts'

export type MarketMessage = { key: string; value: unknown }
export type GivenUp = MarketMessage & { error: unknown; attempts: number }
export type MarketTopic = {
  /** Sends messages, oldest first. Idempotent. */
  send: (items: readonly MarketMessage[], env: Env) => Promise<void>
  /** A message that fails holds up the later ones. */
  in_order?: true
  /** Messages that are kept while none can be sent: the oldest are dropped. Unset: all. */
  most_waiting?: number
  /** Keeps a message for a person, in the transaction that deletes it here. Unset: none. */
  giveUp?: (message: GivenUp) => void
}
export type MarketTopics = Readonly<Record<string, MarketTopic>>
/** State that is sent from tables of its own, up to a mark that it keeps. */
export type MarketSource = { readonly waiting: boolean; send: (env: Env) => Promise<void> }

/** Messages are gathered for this long. */
const GATHER_MS = 50
const MOST_ITEMS = 100
/** Attempts of a message that fails alone, within 18 minutes. */
const MOST_ATTEMPTS = 12

/**
 * Messages of the Ledger to D1 and to scopes. A message is written by the transaction that makes it
 * necessary, and deleted once it is sent. If the process dies in between it is sent again.
 */
export class MarketOutbox {
  readonly #sql: SqlStorage
  readonly #topics: MarketTopics
  readonly #sources: Readonly<Record<string, MarketSource>>
  /** By topic or source: one that fails does not delay the others. */
  readonly #pauses = new Map<string, { failures: number; until: number }>()

  constructor(sql: SqlStorage, topics: MarketTopics, sources: Readonly<Record<string, MarketSource>>) {
    this.#sql = sql
    this.#topics = topics
    this.#sources = sources
  }

  /**
   * Writes a message in the open transaction. It replaces one that waits under the key, and has a
   * `seq` of its own, so that it is sent even if it says the same as one that is on its way.
   */
  put(topic: string, key: string, value: unknown): void {
    this.#sql.exec('INSERT OR REPLACE INTO outbox (topic, "key", value) VALUES (?, ?, ?)', topic, key, JSON.stringify(value))
  }

  /** When the next message is to be sent; null if none waits. */
  dueAt(now: number): number | null {
    const times = this.#waiting.map(({ due_at }) => Math.max(due_at, now + GATHER_MS))
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Sends what waits and is not paused. */
  async flush(env: Env, now: number): Promise<void> {
    const due = this.#waiting.filter(({ due_at }) => due_at <= now)
    await Promise.all(due.map(({ name }) => this.#attempt(name, env, now)))
  }

  /** The topics and sources with something to send, and when; 0: at once. */
  get #waiting(): { name: string; due_at: number }[] {
    const topics = this.#sql.exec<{ name: string; due_at: number }>(
      'SELECT topic AS name, min(due_at) AS due_at FROM outbox GROUP BY topic',
    )
    const sources = Object.keys(this.#sources).filter((name) => this.#sources[name]?.waiting)
    const waiting = [...topics.toArray(), ...sources.map((name) => ({ name, due_at: 0 }))]
    return waiting.map(({ name, due_at }) => ({ name, due_at: Math.max(due_at, this.#pauses.get(name)?.until ?? 0) }))
  }

  async #attempt(name: string, env: Env, now: number): Promise<void> {
    try {
      await (this.#sources[name]?.send(env) ?? this.#sendTopic(name, env, now))
      this.#pauses.delete(name)
    } catch (error) {
      const failures = (this.#pauses.get(name)?.failures ?? 0) + 1
      const pause_ms = backoff(pauses.topic, failures)
      this.#pauses.set(name, { failures, until: now + pause_ms })
      warn({ message: 'the ledger failed to send; will retry', topic: name, pause_ms, error })
      this.#dropOldest(name)
    }
  }

  async #sendTopic(name: string, env: Env, now: number): Promise<void> {
    const topic = this.#topicOf(name)
    if (!topic) throw new Error(`no function sends the topic ${name}`)
    for (;;) {
      const rows = this.#rowsDue(name, now)
      if (rows.length === 0) return
      const items = rows.map(({ key, value }) => ({ key, value: JSON.parse(value) as unknown }))
      const failed = await failuresOf(topic, items, env)
      for (const row of rows) {
        if (failed.has(row.key)) this.#putOff(row, { topic, name, error: failed.get(row.key), now })
        else this.#delete(row)
      }
    }
  }

  /** A message that fails alone has a pause of its own: the others of its topic do not wait. */
  #putOff(row: MessageRow, { topic, name, error, now }: { topic: MarketTopic; name: string; error: unknown; now: number }): void {
    const attempts = row.failures + 1
    const given_up = topic.giveUp !== undefined && attempts >= MOST_ATTEMPTS
    warn({
      message: `the ledger failed to send; ${given_up ? 'a person must help' : 'will retry'}`,
      topic: name,
      key: row.key,
      attempts,
      error,
    })
    if (!given_up) {
      const due_at = Math.max(now, Date.now()) + backoff(pauses.message, attempts)
      this.#sql.exec('UPDATE outbox SET failures = ?, due_at = ? WHERE seq = ?', attempts, due_at, row.seq)
    } else if (this.#delete(row)) topic.giveUp?.({ key: row.key, value: JSON.parse(row.value) as unknown, error, attempts })
  }

  /** False if a newer message has replaced it. */
  #delete({ seq }: MessageRow): boolean {
    return this.#sql.exec('DELETE FROM outbox WHERE seq = ?', seq).rowsWritten > 0
  }

  #dropOldest(name: string): void {
    const most = this.#topicOf(name)?.most_waiting
    if (most === undefined) return
    const newest = 'SELECT seq FROM outbox WHERE topic = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2'
    const { rowsWritten } = this.#sql.exec(`DELETE FROM outbox WHERE topic = ?1 AND seq <= (${newest})`, name, most)
    if (rowsWritten > 0) warn({ message: 'the ledger dropped its oldest messages, which could not be sent', topic: name })
  }

  /** A topic may have a part for each recipient, after a space. */
  #topicOf(name: string): MarketTopic | undefined {
    return this.#topics[name.split(' ', 1)[0] ?? name]
  }

  #rowsDue(name: string, now: number): MessageRow[] {
    const rows = 'SELECT seq, "key", value, failures FROM outbox WHERE topic = ? AND due_at <= ? ORDER BY seq LIMIT ?'
    return this.#sql.exec<MessageRow>(rows, name, now, MOST_ITEMS).toArray()
  }
}

type MessageRow = { seq: number; key: string; value: string; failures: number }

/**
 * Sends messages, each alone if they fail together. Returns those that failed alone; throws if none
 * can be sent now.
 */
async function failuresOf(topic: MarketTopic, items: readonly MarketMessage[], env: Env): Promise<ReadonlyMap<string, unknown>> {
  try {
    await topic.send(items, env)
    return new Map()
  } catch (error) {
    if (topic.in_order || isTransient(error)) throw error
    const [first, ...others] = items
    if (first && others.length === 0) return new Map([[first.key, error]])
  }
  const failed = new Map<string, unknown>()
  for (const item of items) for (const [key, error] of await failuresOf(topic, [item], env)) failed.set(key, error)
  return failed
}
