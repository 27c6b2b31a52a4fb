import { messageOf } from '../../base/error-text.ts'
import type { ParkedWork, WorkKind } from '../../contract/scope.ts'
import type { Database, Unit, GuardedWork } from '../../kernel/unit.ts'
import { scopeHead } from '../log/spans.ts'

export type { GuardedWork } from '../../kernel/unit.ts'

/** Maximum number of crashes that work may cause before it is parked. */
export const MOST_DEATHS = 5
/** After this many consecutive wakings without rest, work is begun one piece at a time. */
const MOST_WAKES = 2
/** Work that a caller asked for: the response reports the failure, and nothing repeats it. */
export const CALLER: GuardedWork = { kind: 'request', id: '' }
/** All work of a kind. After a crash it runs piece by piece, to find the cause. */
export const together = (kind: WorkKind): GuardedWork => ({ kind, id: TOGETHER })

const TOGETHER = '*'
const UNSAID = 'the object crashed during this work'
const MOST_LISTED = 100

type GuardRow = GuardedWork & { deaths: number; reason: string; at: number; parked_at: number | null }
type GuardParts = { database: Database; now: () => number }

/**
 * Counts how often the same work crashed the object, and parks it, so all other work continues.
 * Jobs count their own attempts (`jobs.ts`) and are parked here.
 *
 * 1. Work that throws in its unit is counted after the rollback, before the object restarts.
 * 2. Work that ends the process, or that failed before, is counted on disk before it begins.
 * 3. The normal path writes nothing: work is counted beforehand only after a crash during such
 *    work, or after several wakings with open work and without rest.
 * 4. A crash caused by other work does not count against the running turn.
 */
export class Guard {
  readonly #parts: GuardParts
  readonly #rows: Map<string, GuardRow>
  /** Work counted before it began: its failure is not counted again. */
  readonly #begun = new Set<string>()
  #wakes = 0

  constructor(parts: GuardParts) {
    this.#parts = parts
    this.#rows = new Map(parts.database.all<GuardRow>('SELECT * FROM guard').map((row) => [keyOf(row), row]))
  }

  /** Counts wakings with open work until the object comes to rest. */
  async woke(): Promise<void> {
    const { database } = this.#parts
    this.#wakes = database.read<number>('wakes', 0) + 1
    database.write('wakes', this.#wakes)
    await database.sync()
  }

  /** All work that was open on waking is done or postponed. */
  rested(): void {
    if (this.#wakes === 0) return
    this.#wakes = 0
    this.#parts.database.remove('wakes')
  }

  /** True if work of this kind must run piece by piece, each counted before it begins. */
  careful(kind: WorkKind): boolean {
    return this.#wakes > MOST_WAKES || this.#rows.has(keyOf(together(kind)))
  }

  deaths(work: GuardedWork): number {
    return this.#rows.get(keyOf(work))?.deaths ?? 0
  }

  reason(work: GuardedWork): string {
    return this.#rows.get(keyOf(work))?.reason ?? UNSAID
  }

  /** Counts the work on disk before it begins. False if it crashed too often: park it. */
  async begin(work: GuardedWork): Promise<boolean> {
    if (this.deaths(work) >= MOST_DEATHS) return false
    this.#write({ ...work, deaths: this.deaths(work) + 1, reason: this.reason(work), at: this.#parts.now(), parked_at: null })
    this.#begun.add(keyOf(work))
    await this.#parts.database.sync()
    return true
  }

  /** Counts work whose unit threw, before the object is dropped. */
  failed(work: GuardedWork, error: unknown): void {
    const { database, now } = this.#parts
    // An object without tables has no work to repeat.
    if (!database.laid) return
    database.write('died_of', work.kind)
    this.#acquit(work)
    if (work.kind === 'request') return
    const deaths = this.deaths(work) + (this.#begun.has(keyOf(work)) ? 0 : 1)
    this.#write({ ...work, deaths, reason: messageOf(error), at: now(), parked_at: null })
  }

  /** Counts a failure that did not crash the object. */
  note(unit: Unit, work: GuardedWork, error: unknown): void {
    this.#write({ ...work, deaths: this.deaths(work) + 1, reason: messageOf(error), at: unit.now, parked_at: null })
  }

  /** The kind of work that crashed the object, if known. */
  diedOf(): WorkKind | null {
    const { database } = this.#parts
    const kind = database.read<WorkKind | null>('died_of', null)
    if (kind !== null) database.remove('died_of')
    return kind
  }

  /** Clears the count of work that ended or progressed. */
  done(work: GuardedWork): void {
    this.#begun.delete(keyOf(work))
    const row = this.#rows.get(keyOf(work))
    if (row && row.parked_at === null) this.release(work)
  }

  /** Clears the work's count after a reset. */
  release(work: GuardedWork): void {
    if (!this.#rows.delete(keyOf(work))) return
    this.#parts.database.all('DELETE FROM guard WHERE kind = ? AND id = ?', work.kind, work.id)
  }

  /** Clears all counts of an event that is retried manually. */
  releaseEvent(seq: number): void {
    for (const kind of ['event', 'turn', 'outbox'] as const) this.release({ kind, id: String(seq) })
  }

  /** Stops the work from starting again by itself. */
  park(unit: Unit, work: GuardedWork, reason: string): void {
    const deaths = this.deaths(work)
    this.#write({ ...work, deaths, reason, at: unit.now, parked_at: unit.now })
    unit.log({ ...scopeHead(), kind: 'work-parked', work: work.kind, id: work.id, deaths, reason })
    this.release(together(work.kind))
  }

  /** Time of parking in ms. */
  parkedAt(work: GuardedWork): number | null {
    return this.#rows.get(keyOf(work))?.parked_at ?? null
  }

  get count(): number {
    return this.#parked().length
  }

  /** Parked work for operators, newest first. */
  list(): ParkedWork[] {
    return this.#parked()
      .toSorted((one, other) => other.at - one.at)
      .slice(0, MOST_LISTED)
      .map(({ kind, id, deaths, reason, at }) => ({ kind, id, deaths, reason, parked_at: new Date(at).toISOString() }))
  }

  /** Deletes rows older than `before`, except work that stays parked until somebody resets it. */
  forget(before: number): void {
    for (const row of Array.from(this.#rows.values())) {
      if (row.at < before && row.kind !== 'timer' && row.kind !== 'setting') this.release(row)
    }
  }

  /** Uncounts work that ran beside the cause of a crash. */
  #acquit(guilty: GuardedWork): void {
    for (const key of this.#begun) {
      const row = this.#rows.get(key)
      if (row && key !== keyOf(guilty)) this.#write({ ...row, deaths: row.deaths - 1 })
    }
  }

  #parked(): GuardRow[] {
    return Array.from(this.#rows.values()).filter(({ parked_at }) => parked_at !== null)
  }

  #write(row: GuardRow): void {
    this.#rows.set(keyOf(row), row)
    this.#parts.database.all(
      `INSERT INTO guard (kind, id, deaths, reason, at, parked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (kind, id) DO UPDATE SET deaths = ?3, reason = ?4, at = ?5, parked_at = ?6`,
      row.kind,
      row.id,
      row.deaths,
      row.reason,
      row.at,
      row.parked_at,
    )
  }
}

const keyOf = ({ kind, id }: GuardedWork): string => `${kind} ${id}`
