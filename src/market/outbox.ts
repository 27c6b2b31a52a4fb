import type { Env } from '../env.ts'

/** Each topic is sent by one function; a row waits until it is sent. Sending is idempotent. */
export type Item = { key: string; value: unknown }
export type Topics = Readonly<Record<string, (items: readonly Item[], env: Env) => Promise<void>>>
/** State that is sent from its own tables: up to a watermark, which it keeps itself. */
export type Source = { readonly waiting: boolean; send: (env: Env) => Promise<void> }

/** Messages of the Ledger to D1 and to scopes. */
export class Outbox {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  /** Writes a message in the open transaction; it replaces one that waits under the key. */
  put(topic: string, key: string, value: unknown): void {
    this.#sql.exec(
      'INSERT INTO outbox (topic, "key", value) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET value = ?3',
      topic,
      key,
      JSON.stringify(value),
    )
  }
}
