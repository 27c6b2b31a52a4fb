import { limits } from '../base/limits.ts'
import { hidesNothing, type SecretHider } from '../base/secrets.ts'
import { redactor } from '../traces/redact.ts'
import type { LogEntry, NewEntry } from '../contract/log-entry.ts'
import { boundedEntry } from './bounded-entry.ts'
import type { Database } from './database.ts'
import type { Unit } from './unit.ts'

/** Three parameters a row; a statement takes 100. */
const ROWS_A_STATEMENT = 33

type Text = { seq: number; text: string }
export type LogListener = (entries: Text[]) => void

/**
 * The scope's append-only log (G5). A unit appends entries in the transaction of the changes that
 * they record.
 */
export class Log {
  readonly #database: Database
  readonly #now: () => number
  readonly #hider: SecretHider
  readonly #listeners: LogListener[] = []
  #last: number
  /** Entries of the open unit that are not in the table yet. */
  #unwritten: (Text & { kind: string })[] = []
  /** Entries that the listeners have not received yet. */
  #unannounced: Text[] = []
  #redact = redactor()
  #show = ({ text }: { kind: string; text: string }): string => text
  /** Cached JSON of long values, such as contexts. */
  readonly #texts = new WeakMap<object, string>()

  constructor(database: Database, now: () => number, hider: SecretHider = hidesNothing) {
    this.#database = database
    this.#now = now
    this.#hider = hider
    this.#last = database.first<{ seq: number | null }>('SELECT max(seq) AS seq FROM log')?.seq ?? database.read('log_floor', 0)
  }

  get last(): number {
    return this.#last
  }

  redact(fields: readonly string[]): void {
    this.#redact = redactor(fields)
  }

  /**
   * Removes secrets from a tool's or model's input or output. Returns the same value if it has
   * none.
   */
  clean(value: unknown): unknown {
    return this.#redact(value)
  }

  /** `text` is the value's JSON. */
  cleanContext(value: object, text: string): unknown {
    const clean = this.clean(value)
    if (clean === value) this.#texts.set(value, text)
    return clean
  }

  /** Sets how entries are shown: fields may have become secret since they were written. */
  showBy(show: (entry: { kind: string; text: string }) => string): void {
    this.#show = show
  }

  listen(listener: LogListener): void {
    this.#listeners.push(listener)
  }

  /** Appends entries for `Unit.log`. Returns the `seq` of the first. */
  append(entries: readonly NewEntry[]): number {
    const first = this.#last + 1
    if (entries.length === 0) return first
    const at = new Date(this.#now()).toISOString()
    const texts = entries.map((entry, index) => {
      const seq = this.#last + 1 + index
      return { seq, kind: entry.kind, text: this.#hider.text(this.#textOf({ seq, at, ...entry })) }
    })
    this.#last += entries.length
    for (const text of texts) {
      this.#unwritten.push(text)
      this.#unannounced.push(text)
    }
    return first
  }

  /** Passes the entries of a unit to the listeners, after its commit. */
  announce(): void {
    const entries = this.#unannounced
    this.#unannounced = []
    if (entries.length > 0) for (const listener of this.#listeners) listener(entries)
  }

  /** Writes buffered entries to the table, at the unit's end or before a read. */
  write(): void {
    if (this.#unwritten.length === 0) return
    const rows = this.#unwritten
    this.#unwritten = []
    // Bind the values: as JSON, SQLite would parse and rewrite each entry.
    for (let from = 0; from < rows.length; from += ROWS_A_STATEMENT) {
      const some = rows.slice(from, from + ROWS_A_STATEMENT)
      const values = some.flatMap(({ seq, kind, text }) => [seq, kind, text])
      this.#database.allHidden(
        `INSERT INTO log (at, seq, kind, entry) VALUES ${some.map(() => '(?1, ?, ?, ?)').join()}`,
        this.#now(),
        ...values,
      )
    }
  }

  #textOf(entry: LogEntry): string {
    const context =
      'context' in entry && typeof entry.context === 'object' && entry.context !== null ? this.#texts.get(entry.context) : undefined
    if (context === undefined) return boundedEntry(JSON.stringify(entry), entry)
    return boundedEntry(`${JSON.stringify({ ...entry, context: undefined }).slice(0, -1)},"context":${context}}`, entry)
  }

  /**
   * Reads entries between `after` and `before` as JSON text, oldest first: at most `limit` and a
   * page's bytes.
   */
  read(after: number, limit: number, before = Number.MAX_SAFE_INTEGER, bytes: number = limits.page_bytes): Text[] {
    this.write()
    const rows = this.#database.all<Text & { kind: string }>(
      `SELECT seq, kind, text FROM (SELECT seq, kind, entry AS text, sum(octet_length(entry)) OVER (ORDER BY seq) - octet_length(entry) AS before
        FROM (SELECT seq, kind, entry FROM log WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?)) WHERE before < ? ORDER BY seq`,
      after,
      before,
      limit,
      bytes,
    )
    return rows.map((row) => ({ seq: row.seq, text: this.#show(row) }))
  }

  oldest(): number | null {
    this.write()
    return this.#database.first<{ at: number }>('SELECT at FROM log ORDER BY seq LIMIT 1')?.at ?? null
  }

  newest(): number | null {
    this.write()
    return this.#database.first<{ at: number }>('SELECT at FROM log ORDER BY seq DESC LIMIT 1')?.at ?? null
  }

  entry(seq: number): LogEntry | null {
    this.write()
    const row = this.#database.first<{ entry: string }>('SELECT entry FROM log WHERE seq = ?', seq)
    return row ? (JSON.parse(row.entry) as LogEntry) : null
  }

  /** Deletes up to `limit` entries older than `before`; numbering continues. */
  forget(unit: Unit, before: number, limit: number): number {
    this.write()
    unit.write('log_floor', this.#last)
    return unit.all('DELETE FROM log WHERE seq IN (SELECT seq FROM log ORDER BY seq LIMIT ?2) AND at < ?1 RETURNING seq', before, limit)
      .length
  }
}
