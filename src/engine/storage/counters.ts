import { counters, type Counters as Counts } from '../../contract/scope.ts'
import type { Database } from './database.ts'

export const ZERO = Object.fromEntries(Object.keys(counters.shape).map((name) => [name, 0])) as Counts

/** The log, as far as counts are written with its entries. */
export type EntryWriter = { readonly last: number; write(counts: string | null): boolean }

/** The state key of the sums, and of the last log entry that they include. */
const KEY = 'counters'
const UNITS_PER_SNAPSHOT = 100

/** Sums since the scope exists: the last snapshot, and the counts of the log after it. */
export class ScopeCounters {
  readonly #counts: Counts
  #changes: Partial<Counts> = {}
  #units = 0

  constructor(database: Database) {
    const { seq, counts } = database.read<{ seq: number; counts: Partial<Counts> }>(KEY, { seq: 0, counts: {} })
    this.#counts = { ...ZERO, ...counts }
    const rows = database.all<{ counts: string }>('SELECT counts FROM log WHERE seq > ? AND counts IS NOT NULL', seq)
    for (const row of rows) this.#sum(JSON.parse(row.counts) as Partial<Counts>)
  }

  get counts(): Counts {
    return { ...this.#counts }
  }

  add(changes: Partial<Counts>): void {
    this.#sum(changes)
    for (const [name, change] of Object.entries(changes)) {
      if (change !== 0) this.#changes[name as keyof Counts] = (this.#changes[name as keyof Counts] ?? 0) + change
    }
  }

  /** At the end of a unit: writes its entries and its counts. */
  write(database: Pick<Database, 'write'>, log: EntryWriter): void {
    const counts = Object.keys(this.#changes).length > 0 ? JSON.stringify(this.#changes) : null
    this.#changes = {}
    const due = counts !== null && (this.#units += 1) >= UNITS_PER_SNAPSHOT
    const written = log.write(due ? null : counts)
    if (due || (counts !== null && !written)) this.snapshot(database, log)
  }

  /** Before the log drops rows. */
  snapshot(to: Pick<Database, 'write'>, { last }: Pick<EntryWriter, 'last'>): void {
    to.write(KEY, { seq: last, counts: this.#counts })
    this.#units = 0
  }

  #sum(changes: Partial<Counts>): void {
    for (const [name, change] of Object.entries(changes)) this.#counts[name as keyof Counts] += change
  }
}
