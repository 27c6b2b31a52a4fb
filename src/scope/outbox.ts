import { messageOf } from '../base/error-text.ts'
import { limits } from '../base/limits.ts'
import { replicateEvents, type Report, type ScopeReport } from '../store/replicate.ts'
import type { Alarm } from './alarm.ts'
import type { Database } from './database.ts'
import { CALLER, MOST_DEATHS, type Guard } from './guard.ts'
import { withDeadline } from '../base/deadline.ts'
import { warn } from '../base/warn.ts'
import type { UnitOfWork } from './unit.ts'

/** Time in which changes gather before a report. */
const GATHER_MS = 800
const LONGEST_PAUSE_MS = 30_000
const TELL_TIMEOUT_MS = 15_000
const BATCH = 1000

type Told = Omit<Report, 'discarded'> & { seq: number; discarded: number | null }

const timely = (work: () => Promise<void>): Promise<void> => withDeadline(work, { timeout_ms: TELL_TIMEOUT_MS, what: 'replication to D1' })

type Parts = {
  guard: Pick<Guard, 'note' | 'deaths' | 'park' | 'parkedAt'>
  unit: UnitOfWork
  database: Database
  db: D1Database
  alarm: Alarm
  now: () => number
  scope: () => Omit<ScopeReport, 'updated_at' | 'wake_at'>
  wake: () => number | null
  /**
   * Other data to replicate to D1. `waits` is true if some was left from before the object woke.
   */
  also: { waits: boolean; tell: (db: D1Database) => Promise<void> }
}

/**
 * Replicates the state of every event to D1 in the background, so the scope never waits for D1.
 * Durable state: a row is pending while its `told` is behind its `revision`. After a crash, a row
 * may be sent twice; D1 ignores a revision that it has.
 */
export class Outbox {
  readonly #parts: Parts
  #due: number | null
  #telling = false
  /** True if something changed during a report, which may lack it. */
  #changed = false
  #failures = 0
  /** Maximum number of rows per report, reduced while searching for a row that D1 rejects. */
  #most = BATCH
  #error: string | null = null
  /** The last report about the scope itself. */
  #told = ''

  constructor(parts: Parts) {
    this.#parts = parts
    this.#due = this.waiting > 0 || parts.also.waits ? parts.now() : null
    parts.alarm.source(() => this.#due)
  }

  get waiting(): number {
    return this.#parts.database.first<{ n: number }>('SELECT count(*) AS n FROM events WHERE told < revision')?.n ?? 0
  }

  get lastError(): string | null {
    return this.#error
  }

  /** Schedules a report. */
  changed(): void {
    this.#changed = true
    if (this.#due !== null || this.#telling) return
    this.#due = this.#parts.now() + GATHER_MS
    this.#parts.alarm.by(this.#due)
  }

  get due(): boolean {
    return this.#due !== null && this.#due <= this.#parts.now()
  }

  /** Makes the report due now, for the sweep. */
  hurry(): void {
    if (!this.#telling) this.#due = this.#parts.now()
  }

  async flush(): Promise<void> {
    if (this.#telling) return
    this.#telling = true
    this.#changed = false
    this.#due = null
    try {
      while (await this.#tellSome());
      await this.#parts.also.tell(this.#parts.db)
      this.#failures = 0
      this.#error = null
    } catch (error) {
      this.#failures += 1
      this.#error = messageOf(error)
      const pause = Math.min(LONGEST_PAUSE_MS, 1000 * 2 ** (this.#failures - 1))
      warn({ message: 'failed to replicate to D1; will retry', pause_ms: pause, error: this.#error })
      this.#due = this.#parts.now() + pause
    } finally {
      this.#telling = false
    }
    if (this.#due === null && (this.#changed || this.waiting > 0)) this.#due = this.#parts.now() + GATHER_MS
    this.#parts.alarm.rearm()
  }

  async #tellSome(): Promise<boolean> {
    const { database, db, now, scope, wake } = this.#parts
    const rows = database.all<Told>(
      `SELECT seq, id, payload, status, attempts, error, accepted_at, ended_at, revision, outcome->>'discarded' AS discarded,
          CASE WHEN status = 'dead_lettered' THEN (SELECT entry.value->>'stack' FROM log, json_each(log.entries) AS entry
            WHERE log.seq = (SELECT max(seq) FROM log WHERE seq <= outcome->>'log_seq') AND log.seq + entry.key = outcome->>'log_seq') END AS stack
        FROM (SELECT *, sum(octet_length(payload)) OVER (ORDER BY seq) - octet_length(payload) AS before
          FROM (SELECT * FROM events WHERE told < revision ORDER BY seq LIMIT ?)) WHERE before < ? ORDER BY seq`,
      this.#most,
      limits.page_bytes,
    )
    const reports = rows.map(({ seq: _seq, ...row }) => ({ ...row, discarded: Boolean(row.discarded) }))
    const about = { ...scope(), wake_at: wake() }
    if (rows.length === 0 && JSON.stringify(about) === this.#told) return false
    const report = { ...about, updated_at: now() }
    try {
      await timely(() => replicateEvents(db, reports, report))
    } catch (error) {
      if (rows.length > 0 && (await this.#isFound(rows, { report, error }))) return true
      throw error
    }
    this.#most = Math.min(BATCH, this.#most * 2)
    database.all(
      `UPDATE events SET told = told_now.revision FROM (SELECT value->>0 AS seq, value->>1 AS revision FROM json_each(?)) AS told_now
        WHERE events.seq = told_now.seq`,
      JSON.stringify(rows.map(({ seq, revision }) => [seq, revision])),
    )
    this.#told = JSON.stringify(about)
    return rows.length > 0
  }

  /**
   * Searches for a row that D1 rejects, if D1 accepts a report without rows: halves the report
   * until the row is alone, retries it a few times and parks it. Returns true to continue.
   */
  async #isFound(rows: readonly Pick<Told, 'seq' | 'id'>[], { report, error }: { report: ScopeReport; error: unknown }): Promise<boolean> {
    const { db, guard, unit } = this.#parts
    await timely(() => replicateEvents(db, [], report))
    this.#failures = 0
    const [row] = rows
    if (rows.length > 1 || !row) {
      this.#most = Math.ceil(rows.length / 2)
      return true
    }
    const work = { kind: 'outbox', id: String(row.seq) } as const
    unit((unit) => {
      guard.note(unit, work, error)
      if (guard.deaths(work) < MOST_DEATHS) return
      // A later change of the row replicates it again.
      unit.all('UPDATE events SET told = revision WHERE seq = ?', row.seq)
      guard.park(unit, work, `D1 rejected the event ${row.id}: ${messageOf(error)}`)
    }, CALLER)
    return guard.parkedAt(work) !== null
  }
}
