import type { Env } from '../../bindings.ts'
import { messageOf } from '../../protocol/message-of.ts'
import type { ApprovedRun, ParkedRun } from '../../skills/session/ports.ts'
import { findApproval, insertApproval } from '../../store/approvals.ts'
import type { Alarm } from '../alarm.ts'
import type { Database } from '../database.ts'
import { withDeadline } from '../deadline.ts'
import type { UnitOfWork } from '../unit-of-work.ts'

/** How long a person has, and how often the scope looks by itself: it is told of a decision, but that may be lost. */
const EXPIRES_MS = 86_400_000
const LOOK_MS = 60_000
const RETRY_MS = 5000
const TIMEOUT_MS = 10_000

type Row = { approval_id: string; run: string; told: number; expires_at: number }
export type Decided = { run: ApprovedRun; status: 'approved' | 'rejected' | 'expired'; by: string | null; reason: string | null }
type Parts = { scope: string; env: Env; database: Database; unit: UnitOfWork; alarm: Alarm; requested_by: () => string; now: () => number }

/**
 * Runs that wait for an approval. Kept state: the run here, then the question in D1, where exactly one decision is taken; then `running` here, before it is run.
 * If the process dies before D1 was asked, it is asked again; after the decision, the scope finds it; while it runs, the run is resumed from its journal, and
 * one that had not begun is begun: `claim` is given for it as often as that, and the journal has it run once.
 */
export class ParkedRuns {
  readonly #parts: Parts
  #look_at: number | null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#look_at = this.#open().length > 0 ? parts.now() : null
    parts.alarm.source(() => this.#look_at)
  }

  get due(): boolean {
    return this.#look_at !== null && this.#look_at <= this.#parts.now()
  }

  async park(run: ParkedRun): Promise<string> {
    const { database, unit, now } = this.#parts
    const approval_id = crypto.randomUUID()
    unit(() =>
      database.all(
        `INSERT INTO parked_runs (approval_id, run, status, expires_at, parked_at) VALUES (?, ?, 'waiting', ?, ?)`,
        approval_id,
        JSON.stringify(run),
        now() + EXPIRES_MS,
        now(),
      ),
    )
    await this.#ask()
    this.#look(LOOK_MS)
    return approval_id
  }

  /** What was decided meanwhile, of all that wait. Each approved run is `running` from here on. */
  async look(): Promise<Decided[]> {
    const { env, now } = this.#parts
    this.#look_at = now() + LOOK_MS
    await this.#ask()
    const decided: Decided[] = []
    for (const row of this.#open()) {
      const approval = await this.#timely(() => findApproval(env.DB, row.approval_id, now()))
      if (!approval || approval.status === 'pending') continue
      decided.push(this.#claim(row, { status: approval.status, by: approval.decided_by, reason: approval.reason }))
    }
    this.#look_at = this.#open().length > 0 ? now() + LOOK_MS : null
    this.#parts.alarm.rearm()
    return decided
  }

  /** Those that were being run when the process died. */
  running(): ApprovedRun[] {
    return this.#parts.database
      .all<Row>(`SELECT approval_id, run, told, expires_at FROM parked_runs WHERE status = 'running'`)
      .map(({ approval_id, run }) => ({ ...(JSON.parse(run) as ParkedRun), approval_id }))
  }

  done(approval_id: string): void {
    const { database, unit } = this.#parts
    unit(() => database.all(`UPDATE parked_runs SET status = 'done' WHERE approval_id = ?`, approval_id))
  }

  #claim({ approval_id, run }: Row, decision: Omit<Decided, 'run'>): Decided {
    const { database, unit } = this.#parts
    const status = decision.status === 'approved' ? 'running' : 'done'
    unit(() => database.all('UPDATE parked_runs SET status = ?2 WHERE approval_id = ?1', approval_id, status))
    return { ...decision, run: { ...(JSON.parse(run) as ParkedRun), approval_id } }
  }

  #open(): Row[] {
    return this.#parts.database.all<Row>(
      `SELECT approval_id, run, told, expires_at FROM parked_runs WHERE status = 'waiting' ORDER BY parked_at LIMIT 100`,
    )
  }

  /** Asks D1 what it was not asked yet. */
  async #ask(): Promise<void> {
    const { env, scope, database, unit, requested_by } = this.#parts
    for (const { approval_id, run, told, expires_at } of this.#open()) {
      if (told === 1) continue
      const { skill_id, version, manifest_hash, inputs_hash, inputs, why, parked_at } = JSON.parse(run) as ParkedRun
      const question = { id: approval_id, scope, skill_id, version, manifest_hash, inputs_hash, inputs, why, requested_by: requested_by() }
      try {
        await this.#timely(() => insertApproval(env.DB, { ...question, created_at: parked_at, expires_at }))
      } catch (error) {
        console.warn(JSON.stringify({ message: 'D1 could not be asked for an approval, it will be again', scope, error: messageOf(error) }))
        return this.#look(RETRY_MS)
      }
      unit(() => database.all('UPDATE parked_runs SET told = 1 WHERE approval_id = ?', approval_id))
    }
  }

  #look(in_ms: number): void {
    const { alarm, now } = this.#parts
    this.#look_at = Math.min(this.#look_at ?? Number.POSITIVE_INFINITY, now() + in_ms)
    alarm.by(this.#look_at)
  }

  #timely<Result>(work: () => Promise<Result>): Promise<Result> {
    return withDeadline(work, { timeout_ms: TIMEOUT_MS, what: 'D1' })
  }
}
