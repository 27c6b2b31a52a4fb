import type { Statement } from '../../core/event-statements.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import type { Counters as Counts, WorkKind } from '../../contract/scope.ts'
import type { Alarm } from '../upkeep/alarm.ts'
import type { ScopeCounters, EntryWriter } from './counters.ts'
import type { Database, ScopeRow, StateWrite } from './database.ts'

export type GuardedWork = { kind: WorkKind; id: string }

/** Runs synchronous work in one transaction. A failure counts against `of`. Nested units join. */
export type UnitOfWork = <Result>(work: (unit: Unit) => Result, of?: GuardedWork) => Result

/** A write that waits in memory for the next unit of work, which makes it first. */
export class Deferred {
  #write: ((unit: Unit) => void) | null = null

  put(write: (unit: Unit) => void): void {
    this.#write = write
  }

  drop(): void {
    this.#write = null
  }

  flush(unit: Unit): void {
    const write = this.#write
    this.#write = null
    write?.(unit)
  }
}

/** Changes buffered in memory until the unit writes them. */
type Buffered = { changes: () => StateWrite[] }
type UnitParts = {
  database: Database
  log: EntryWriter & { append(entries: readonly NewEntry[], now: number): number; announce(): void }
  counters: ScopeCounters
  buffered: readonly Buffered[]
  deferred: Pick<Deferred, 'flush'>
  guard: { failed(work: GuardedWork, error: unknown): void }
  alarm: Pick<Alarm, 'by'>
  /** Sets the alarm that the unit's changes need. */
  outbox: { arm(): void }
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
      if (unit.depth === 1) deferred.flush(unit)
      const made = work(unit)
      // A nested unit failed, and its error was caught on the way.
      if (failure) throw failure.error
      if (unit === open && unit.depth > 1) return made
      database.writeAll(buffered.flatMap((buffer) => buffer.changes()))
      parts.counters.write(database, log)
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
  return (work, of) => {
    if (failure && !open) throw failure.error
    const outer = current
    current ??= of
    try {
      const made = inUnit(work)
      if (open) return made
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
