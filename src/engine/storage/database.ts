import type { Statement } from '../../core/event-statements.ts'
import { jsonChunks } from '../../base/byte-length.ts'
import { hideAll, hidesNothing, type SecretHider } from '../../base/secrets.ts'

/** A key of the table `state` and its value, not yet serialized. */
export type StateWrite = [key: string, value: unknown]

/** A row of any table but the log, which alone has blobs. */
export type ScopeRow = Record<string, string | number | null>

/** `lay` creates the schema and the scope's initial rows. */
type Schema = { laid: boolean; lay: () => void }

/** Statements without effect on empty tables. Their aggregates return no row instead of zero. */
const NEEDS_ROWS = /^\s*(?:SELECT|UPDATE|DELETE)\b/

/**
 * A scope's SQLite. Synchronous, so that a task's statements are committed together. Masks secrets
 * in bound text. The first insertion creates the schema.
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

  get laid(): boolean {
    return this.#laid
  }

  run({ sql, params }: Statement): ScopeRow[] {
    return this.all(sql, ...params)
  }

  all<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Shape[] {
    const has_text = params.some((param) => typeof param === 'string')
    return this.allHidden(sql, ...(has_text ? hideAll(this.#hider, params) : params))
  }

  /** For parameters without secrets: skips the search for them. */
  allHidden<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Shape[] {
    if (this.#isIdle(sql)) return []
    return this.#storage.sql.exec(sql, ...params).toArray() as unknown as Shape[]
  }

  /** True if `sql` has no effect without a schema; otherwise creates a missing schema. */
  #isIdle(sql: string): boolean {
    if (this.#laid) return false
    if (NEEDS_ROWS.test(sql)) return true
    this.transaction(() => {
      this.#laid = true
      this.#lay()
    })
    return false
  }

  /** Runs `sql` per chunk of `values`, read from `json_each(?1)`, since a parameter holds 2 MB. */
  allOf<Shape extends object = ScopeRow>(values: readonly (string | number)[], sql: string, ...params: SqlStorageValue[]): Shape[] {
    const chunks = jsonChunks(values.map((value) => JSON.stringify(value)))
    return chunks.flatMap((chunk) => this.all<Shape>(sql, chunk, ...params))
  }

  /** Streams the rows, so that a caller loads only those it needs. */
  each<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Iterable<Shape> {
    if (this.#isIdle(sql)) return []
    return this.#storage.sql.exec(sql, ...params) as unknown as Iterable<Shape>
  }

  first<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Shape | undefined {
    return this.all<Shape>(sql, ...params)[0]
  }

  /** Resolves once all writes are on disk. */
  sync(): Promise<void> {
    return this.#storage.sync()
  }

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

  remove(key: string): void {
    this.all('DELETE FROM state WHERE key = ?', key)
  }

  writeAll(changes: readonly StateWrite[]): void {
    if (changes.length === 0) return
    const write = `INSERT INTO state (key, value) SELECT value->>0, value->1 FROM json_each(?) WHERE true ON CONFLICT (key) DO UPDATE SET value = excluded.value`
    for (const chunk of jsonChunks(changes.map((change) => JSON.stringify(change)))) this.all(write, chunk)
  }
}
