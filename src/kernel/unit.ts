import type { Statement } from '../core/event-statements.ts'
import type { NewEntry } from '../contract/log-entry.ts'
import { type Counters as Counts, type WorkKind, counters } from '../contract/scope.ts'
import { jsonChunks } from '../base/json.ts'
import { type LazyTables, NEEDS_ROWS } from './lazy-tables.ts'
import { hideAll, hidesNothing, type SecretHider } from '../base/secrets.ts'

export type GuardedWork = { kind: WorkKind; id: string }

/** Runs synchronous work in one transaction. A failure counts against `of`. Nested units join. */
export type UnitOfWork = <Result>(work: (unit: Unit) => Result, of?: GuardedWork) => Result

type Write = (unit: Unit) => void

/** Writes that wait in memory for the next unit of work, which makes them first. */
export class Deferred {
  readonly #writes = new Set<Write>()
  #answers: (() => void)[] = []
  /** The end of a unit waits for the next one, which writes both: no task ends before. */
  unfinished = false

  get any(): boolean {
    return this.#writes.size > 0
  }

  put(write: Write): void {
    this.#writes.add(write)
  }

  drop(write: Write): void {
    this.#writes.delete(write)
  }

  /** Calls back once the last unit has ended, if its end waits, or else at once. */
  after(answer: () => void): void {
    if (this.unfinished) this.#answers.push(answer)
    else answer()
  }

  ended(): void {
    for (const answer of this.#answers.splice(0)) answer()
  }

  flush(unit: Unit): void {
    for (const write of this.#writes) {
      this.#writes.delete(write)
      write(unit)
    }
  }
}

/** Changes buffered in memory until the unit writes them. */
type Buffered = { changes: () => StateWrite[] }
type UnitParts = {
  database: Database
  log: EntryWriter & { append(entries: readonly NewEntry[], now: number): number; announce(): void; begin(now: number): void }
  counters: ScopeCounters
  buffered: readonly Buffered[]
  deferred: Pick<Deferred, 'flush' | 'unfinished' | 'ended'>
  guard: { failed(work: GuardedWork, error: unknown): void }
  alarm: { by(at: number): void }
  /** Sets the alarm that the unit's changes need. */
  outbox: { arm(): void }
  /** True if a caller who waits for the unit reports to D1 all that the log has. */
  isTold?: () => boolean
  reset: (error: unknown) => void
  now: () => number
}

/**
 * Creates the unit of work. If work throws, memory and disk differ, so `reset` drops the object.
 * What follows the log, and the alarm, are served once the unit is committed and closed.
 */
export function unitOfWork(parts: UnitParts): UnitOfWork {
  const { database, log, buffered, deferred, guard, outbox, reset, now } = parts
  let open: Unit | null = null
  let failure: { error: unknown } | null = null
  let current: GuardedWork | undefined
  const commit = <Result>(unit: Unit, work: (unit: Unit) => Result): Result =>
    database.transaction(() => {
      const { held, bound } = database
      if (unit.depth === 1) {
        // Times of a clock that was set back are corrected before the unit writes its own.
        log.begin(unit.now)
        deferred.flush(unit)
      }
      const made = work(unit)
      // A nested unit failed, and its error was caught on the way.
      if (failure) throw failure.error
      if (unit === open && unit.depth > 1) return made
      // The next unit writes the insertions that this one holds back, and all that follows here. If
      // it fails, no row of this one may be left: a unit that wrote some ends now.
      deferred.unfinished = database.held !== null && database.held !== held && database.bound === bound
      if (deferred.unfinished) return made
      database.release()
      database.writeAll(buffered.flatMap((buffer) => buffer.changes()))
      parts.counters.write(database, log, parts.isTold?.())
      return made
    })
  const died = (error: unknown) => {
    failure ??= { error }
    if (open) return
    try {
      // Count after the rollback, which would undo it.
      if (current) guard.failed(current, error)
    } catch {
      // The storage fails; drop the object anyway.
    }
    reset(error)
  }
  const inUnit = <Result>(work: (unit: Unit) => Result): Result => {
    const unit = (open ??= new Unit(parts, now()))
    unit.depth += 1
    try {
      return commit(unit, work)
    } finally {
      unit.depth -= 1
      if (unit.depth === 0) open = null
    }
  }
  const run: UnitOfWork = (work, of) => {
    if (failure && !open) throw failure.error
    const outer = current
    current ??= of
    try {
      const made = inUnit(work)
      if (open || deferred.unfinished) return made
      deferred.ended()
      log.announce()
      if (database.laid) outbox.arm()
      return made
    } catch (error) {
      died(error)
      throw error
    } finally {
      current = outer
    }
  }
  // Alone they would be half of what a unit writes. After a failed one, this throws.
  database.precede = (write) => (open ? write() : run(() => {}))
  return run
}

/** An open transaction. Methods that must run in one take it as their first parameter. */
export class Unit {
  readonly now: number
  depth = 0
  readonly #parts: Pick<UnitParts, 'database' | 'log' | 'counters' | 'alarm'>

  constructor(parts: Pick<UnitParts, 'database' | 'log' | 'counters' | 'alarm'>, now: number) {
    this.#parts = parts
    this.now = now
  }

  all<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Shape[] {
    return this.#open.database.all<Shape>(sql, ...params)
  }

  first<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Shape | undefined {
    return this.#open.database.first<Shape>(sql, ...params)
  }

  /** Runs `sql` once per chunk of `values`, which it reads from `json_each(?1)`. */
  allOf<Shape extends object = ScopeRow>(values: readonly (string | number)[], sql: string, ...params: SqlStorageValue[]): Shape[] {
    return this.#open.database.allOf<Shape>(values, sql, ...params)
  }

  /** For parameters without secrets: skips the search for them. */
  allHidden<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Shape[] {
    return this.#open.database.allHidden<Shape>(sql, ...params)
  }

  run(statement: Statement): ScopeRow[] {
    return this.#open.database.run(statement)
  }

  /** Writes rows that mean nothing alone: they may stay although the rest of the unit is lost. */
  aside(sql: string, ...params: SqlStorageValue[]): void {
    this.#open.database.aside(sql, ...params)
  }

  /** Sets a key of the table `state`. */
  write(key: string, value: unknown): void {
    this.#open.database.write(key, value)
  }

  /** Appends to the log. Returns the `seq` of the first entry. */
  log(...entries: NewEntry[]): number {
    return this.#open.log.append(entries, this.now)
  }

  count(changes: Partial<Counts>): void {
    this.#open.counters.add(changes)
  }

  /** Sets the object's alarm to `at` unless it is earlier already. */
  wakeBy(at: number): void {
    this.#open.alarm.by(at)
  }

  get #open(): Pick<UnitParts, 'database' | 'log' | 'counters' | 'alarm'> {
    if (this.depth === 0) throw new Error('this unit of work has ended')
    return this.#parts
  }
}

/** A key of the table `state` and its value, not yet serialized. */
export type StateWrite = [key: string, value: unknown]

/** A row of any table but the log, which alone has blobs. */
export type ScopeRow = Record<string, string | number | null>

/** `lay` runs before the first insertion. `tables`: those that their first rows lay, one by one. */
type Laying = { laid: boolean; lay: () => void; tables?: LazyTables }

const NAMES_EVENTS = /\bevents\b/

/**
 * A scope's SQLite. Synchronous, so that a task's statements are committed together. Masks secrets
 * in bound text. An insertion lays its table.
 */
export class Database {
  readonly #storage: DurableObjectStorage
  readonly #hider: SecretHider
  readonly #lay: () => void
  readonly #tables: LazyTables | undefined
  #laid: boolean
  /** Rows that were written since the object woke. */
  written = 0
  /** As many, without those that mean nothing alone. */
  bound = 0
  /** Insertions of events that wait in memory, for the next statement that names the table. */
  held: (() => void) | null = null
  /** Writes what waits in memory before it is read, in the open unit or in one of its own. */
  precede = (write: () => void): void => write()

  /** Without a schema to lay, the tables are there. */
  constructor(
    storage: DurableObjectStorage,
    { laid, lay, tables }: Laying = { laid: true, lay: () => {} },
    hider: SecretHider = hidesNothing,
  ) {
    this.#storage = storage
    this.#lay = lay
    this.#tables = tables
    this.#laid = laid
    this.#hider = hider
  }

  get laid(): boolean {
    return this.#laid
  }

  /** Makes the insertions that wait in memory. */
  release(): void {
    const insert = this.held
    this.held = null
    insert?.()
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
    const text = this.#runnable(sql)
    if (text === null) return []
    const cursor = this.#storage.sql.exec(text, ...params)
    const rows = cursor.toArray() as unknown as Shape[]
    this.written += cursor.rowsWritten
    this.bound += cursor.rowsWritten
    return rows
  }

  /** For parameters without secrets: writes rows that mean nothing alone. */
  aside(sql: string, ...params: SqlStorageValue[]): void {
    const { bound } = this
    this.allHidden(sql, ...params)
    this.bound = bound
  }

  /** The text to run, or null if it has no effect. An insertion lays what is missing. */
  #runnable(sql: string): string | null {
    if (this.held !== null && NAMES_EVENTS.test(sql)) this.precede(() => this.release())
    if (!this.#laid && NEEDS_ROWS.test(sql)) return null
    if (!this.#laid)
      this.transaction(() => {
        this.#laid = true
        this.#lay()
      })
    return this.#tables ? this.#tables.runnable(sql) : sql
  }

  /** Runs `sql` per chunk of `values`, read from `json_each(?1)`, since a parameter holds 2 MB. */
  allOf<Shape extends object = ScopeRow>(values: readonly (string | number)[], sql: string, ...params: SqlStorageValue[]): Shape[] {
    const chunks = jsonChunks(values.map((value) => JSON.stringify(value)))
    return chunks.flatMap((chunk) => this.all<Shape>(sql, chunk, ...params))
  }

  /** Streams the rows, so that a caller loads only those it needs. */
  each<Shape extends object = ScopeRow>(sql: string, ...params: SqlStorageValue[]): Iterable<Shape> {
    const text = this.#runnable(sql)
    return text === null ? [] : (this.#storage.sql.exec(text, ...params) as unknown as Iterable<Shape>)
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
    const tables = this.#tables?.laid
    try {
      return this.#storage.transactionSync(work)
    } catch (error) {
      this.#laid = laid
      if (this.#tables && tables) this.#tables.laid = tables
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

const NAMES = Object.keys(counters.shape) as (keyof Counts)[]
export const ZERO = Object.fromEntries(NAMES.map((name) => [name, 0])) as Counts

/** The log, as far as counts are written with its entries. */
type EntryWriter = { readonly last: number; write(counts: string | null): boolean }

/** The state key of the sums, and of the last log entry that they include. */
const KEY = 'counters'
const UNITS_PER_SNAPSHOT = 100
/** Notes are long: a wake reads the notes of a few units. */
const NOTES_PER_SNAPSHOT = 16
const MOST_NOTED = 16_000
type Counted = Partial<Counts> & { told?: number; noted?: Readonly<Record<string, unknown>> }
type Snapshot = { seq: number; counts: Partial<Counts>; told?: number }

/**
 * Values of the table `state` that change with most units. The row of the log has them, so that a
 * unit writes no rows for them; a snapshot writes them to the table.
 */
export type Noted = {
  /** Returns the values that changed since the last call, and since the last one of `save`. */
  note: () => StateWrite[]
  /** Returns all values that the table lacks. */
  save: () => StateWrite[]
}

/** Sums since the scope exists: the last snapshot, and the counts of the log after it. */
export class ScopeCounters {
  /** The values that the log has beside counts, and the table `state` lacks. */
  readonly noted = new Map<string, unknown>()
  #notes: Noted = { note: () => [], save: () => [] }
  #noted_units = 0
  readonly #counts: Counts
  #changes: Partial<Counts> = {}
  #units = 0
  #told: number

  constructor(database: Database) {
    const { seq, counts, told = 0 } = database.read<Snapshot>(KEY, { seq: 0, counts: {} })
    this.#counts = { ...ZERO }
    this.#sum(counts)
    this.#told = told
    const rows = database.all<{ counts: string }>('SELECT counts FROM log WHERE seq > ? AND counts IS NOT NULL', seq)
    for (const row of rows) {
      const { told: later = this.#told, noted = {}, ...counted } = JSON.parse(row.counts) as Counted
      this.#told = later
      this.#sum(counted)
      for (const [key, value] of Object.entries(noted)) this.noted.set(key, value)
    }
    this.#units = rows.length
    this.#noted_units = this.noted.size === 0 ? 0 : rows.length
  }

  get counts(): Counts {
    return { ...this.#counts }
  }

  /** The last entry of the log that was written as reported by a caller. */
  get told(): number {
    return this.#told
  }

  /** Registers what is written beside the counts. */
  notes(notes: Noted): void {
    this.#notes = notes
  }

  add(changes: Partial<Counts>): void {
    this.#sum(changes)
    for (const [name, change] of Object.entries(changes)) {
      if (change !== 0) this.#changes[name as keyof Counts] = (this.#changes[name as keyof Counts] ?? 0) + change
    }
  }

  /** At the end of a unit: writes its entries and its counts, and whether a caller reports them. */
  write(database: Pick<Database, 'write'>, log: EntryWriter, told = false): void {
    const has_counts = Object.keys(this.#changes).length > 0
    if (has_counts && told) this.#told = log.last
    const counted = told ? { ...this.#changes, told: log.last } : this.#changes
    const noted = this.#notes.note()
    const text = JSON.stringify({ ...counted, ...(noted.length > 0 && { noted: Object.fromEntries(noted) }) })
    const counts = has_counts && text.length <= MOST_NOTED ? text : null
    this.#changes = {}
    if (has_counts) this.#units += 1
    if (noted.length > 0) this.#noted_units += 1
    const is_many = this.#units >= UNITS_PER_SNAPSHOT || this.#noted_units >= NOTES_PER_SNAPSHOT
    const due = counts === null ? has_counts || noted.length > 0 : is_many
    const written = log.write(due ? null : counts)
    if (due || (counts !== null && !written)) this.snapshot(database, log)
  }

  /** Before the log drops rows. */
  snapshot(to: Pick<Database, 'write'>, { last }: Pick<EntryWriter, 'last'>): void {
    to.write(KEY, { seq: last, counts: this.#counts, told: this.#told } satisfies Snapshot)
    for (const [key, value] of this.#notes.save()) to.write(key, value)
    this.#units = this.#noted_units = 0
  }

  /** Only what it knows: another version of the Worker writes other names, too, and sums them. */
  #sum(changes: Partial<Counts>): void {
    for (const name of NAMES) this.#counts[name] += changes[name] ?? 0
  }
}
