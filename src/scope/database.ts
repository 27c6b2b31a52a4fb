import type { Statement } from '../core/event-statements.ts'
import { jsonChunks } from '../base/byte-length.ts'
import { hidesNothing, type SecretHider } from '../base/secrets.ts'

/** A key of the table `state`, and its value as JSON has it. */
export type StateChange = [key: string, value: unknown]

/** No table of a scope holds blobs. */
export type Row = Record<string, string | number | null>

/** `lay` lays the schema, with what every scope keeps of itself. */
type Schema = { laid: boolean; lay: () => void }

/**
 * Statements that find nothing and change nothing while every table is empty. An aggregate finds no
 * row then, in place of one with zero or null.
 */
const NEEDS_ROWS = /^\s*(?:SELECT|UPDATE|DELETE)\b/

/**
 * A scope's SQLite: synchronous, so that what is done in one go is seen and kept as one. No text that is bound
 * here keeps a secret of the deployment, whoever wrote it. The first insertion lays the schema: an
 * object that was only asked keeps nothing, whatever name it was asked under.
 */
export class Database {
  readonly #storage: DurableObjectStorage
  readonly #hider: SecretHider
  readonly #lay: () => void
  #laid: boolean

  constructor(storage: DurableObjectStorage, { laid, lay }: Schema, hider: SecretHider = hidesNothing) {
    this.#storage = storage
    this.#lay = lay
    this.#laid = laid
    this.#hider = hider
  }

  /** False until the scope has written something. */
  get laid(): boolean {
    return this.#laid
  }

  run({ sql, params }: Statement): Row[] {
    return this.all(sql, ...params)
  }

  all<Shape extends object = Row>(sql: string, ...params: SqlStorageValue[]): Shape[] {
    return this.allHidden(sql, ...params.map((param) => this.#hidden(param)))
  }

  /** For parameters out of which secrets were taken before: they are not searched again. */
  allHidden<Shape extends object = Row>(sql: string, ...params: SqlStorageValue[]): Shape[] {
    if (this.#isIdle(sql)) return []
    return this.#storage.sql.exec(sql, ...params).toArray() as unknown as Shape[]
  }

  /** True where the schema is not laid and `sql` does not need it; lays it where it does. */
  #isIdle(sql: string): boolean {
    if (this.#laid) return false
    if (NEEDS_ROWS.test(sql)) return true
    this.transaction(() => {
      this.#laid = true
      this.#lay()
    })
    return false
  }

  #hidden<Value>(param: Value): Value | string {
    return typeof param === 'string' ? this.#hider.text(param) : param
  }

  /**
   * Runs `sql` once for each chunk of `values`, which it reads from `json_each(?1)`; `params` follow as ?2, ?3 … Together they are one
   * answer: one SQL parameter holds about 2 MB, a list of ids or of `seq` may be longer.
   */
  allOf<Shape extends object = Row>(values: readonly (string | number)[], sql: string, ...params: SqlStorageValue[]): Shape[] {
    const chunks = jsonChunks(values.map((value) => JSON.stringify(value)))
    return chunks.flatMap((chunk) => this.all<Shape>(sql, chunk, ...params))
  }

  /** Row by row: what is not asked for is not loaded. */
  each<Shape extends object = Row>(sql: string, ...params: SqlStorageValue[]): Iterable<Shape> {
    if (this.#isIdle(sql)) return []
    return this.#storage.sql.exec(sql, ...params) as unknown as Iterable<Shape>
  }

  first<Shape extends object = Row>(sql: string, ...params: SqlStorageValue[]): Shape | undefined {
    return this.all<Shape>(sql, ...params)[0]
  }

  /** Resolves once all that was written is on disk. */
  sync(): Promise<void> {
    return this.#storage.sync()
  }

  /** All of it or nothing, also when `work` throws. */
  transaction<Result>(work: () => Result): Result {
    const laid = this.#laid
    try {
      return this.#storage.transactionSync(work)
    } catch (error) {
      this.#laid = laid
      throw error
    }
  }

  read<Value>(key: string, otherwise: Value): Value {
    const row = this.first<{ value: string }>('SELECT value FROM state WHERE key = ?', key)
    return row ? (JSON.parse(row.value) as Value) : otherwise
  }

  write(key: string, value: unknown): void {
    this.all('INSERT INTO state (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2', key, JSON.stringify(value))
  }

  /** By one statement. */
  writeAll(changes: readonly StateChange[]): void {
    const write = `INSERT INTO state (key, value) SELECT value->>0, value->1 FROM json_each(?) WHERE true ON CONFLICT (key) DO UPDATE SET value = excluded.value`
    for (const chunk of jsonChunks(changes.map((change) => JSON.stringify(change)))) this.all(write, chunk)
  }
}
