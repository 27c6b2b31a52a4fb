import type { Env } from '../../env.ts'
import type { Approval, ApprovalRun } from '../../contract/approval.ts'
import type { ApprovedRun, Parked, ParkedRun } from '../../skills/session/ports.ts'
import { findApprovals, insertApproval } from '../../store/approvals.ts'
import type { Alarm } from '../alarm.ts'
import type { Database } from '../database.ts'
import { withDeadline } from '../../base/deadline.ts'
import type { Log } from '../log.ts'
import { scopeHead } from '../spans.ts'
import type { RunReports } from './run-reports.ts'
import { warn } from '../../base/warn.ts'
import type { UnitOfWork } from '../unit.ts'

/** How often the scope looks by itself: it is told of a decision, but that may be lost. */
const LOOK_MS = 60_000
const RETRY_MS = 5000
const TIMEOUT_MS = 10_000
/** A model that proposes again and again must not fill the storage, nor the list that a person reads. */
const MOST_WAITING = 100

type Row = { approval_id: string; run: string; told: number; expires_at: number }
type Decision = { status: Exclude<Approval['status'], 'pending'>; by: string | null; reason: string | null }
type Parts = {
  scope: string
  env: Env
  database: Database
  run_reports: RunReports
  unit: UnitOfWork
  log: Log
  alarm: Alarm
  requested_by: () => string
  now: () => number
}

/**
 * Runs that wait for an approval. Kept state: the run here, then the question in D1, where exactly one decision is taken; then `running` here, in one
 * transaction with the log's entry, before it is run; once it has ended, or was not approved, its row is gone.
 * If the process dies before D1 was asked, it is asked again; after the decision, the scope finds it; while it runs, the run is resumed from its journal, and
 * one that had not begun is begun: `running` gives it as often as that, and the journal has it run once.
 */
export class ParkedRuns {
  readonly #parts: Parts
  #look_at: number | null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#look_at = this.#any() ? parts.now() : null
    parts.alarm.source(() => this.#look_at)
  }

  get due(): boolean {
    return this.#look_at !== null && this.#look_at <= this.#parts.now()
  }

  /** What waits already, asked for by the same key or by an agent, is not asked for twice. `tell` is called in the transaction that parks it. */
  async park(run: ParkedRun, tell: (approval_id: string) => void): Promise<Parked> {
    const { database, unit, now } = this.#parts
    const earlier = this.#same(run)
    if (earlier) return { ok: true, approval_id: earlier.approval_id, asked_before: true }
    if (this.#waiting().length >= MOST_WAITING) {
      return { ok: false, detail: `${MOST_WAITING} runs of this scope wait for an approval already: decide on some of them first` }
    }
    const approval_id = crypto.randomUUID()
    unit(() => {
      database.all(
        `INSERT INTO parked_runs (approval_id, run, status, expires_at, parked_at) VALUES (?, ?, 'waiting', ?, ?)`,
        approval_id,
        JSON.stringify(run),
        run.expires_at,
        now(),
      )
      tell(approval_id)
    })
    this.#look(LOOK_MS)
    await this.#ask()
    return { ok: true, approval_id, asked_before: false }
  }

  /** Takes over what was decided meanwhile: each approved run is `running` from here on. */
  async look(): Promise<void> {
    const { env, unit, alarm, now } = this.#parts
    this.#look_at = now() + LOOK_MS
    // Where D1 does not take a question, it has no answers either: to wait for it twice would outlast the next look.
    if (!(await this.#ask())) return
    const ids = this.#waiting().map(({ approval_id }) => approval_id)
    const found = ids.length === 0 ? [] : await this.#timely(() => findApprovals(env.DB, ids, now()))
    const approvals = new Map(found.map((approval) => [approval.id, approval]))
    unit(() => {
      for (const row of this.#waiting()) {
        const decision = decisionOn(row, approvals.get(row.approval_id), now())
        if (decision) this.#decided(row, decision)
      }
    })
    if (!this.#any()) this.#look_at = null
    alarm.rearm()
  }

  /** Approved and not at their end: some of them may be under way. */
  running(): ApprovedRun[] {
    return this.#parts.database
      .all<Row>(`SELECT approval_id, run, told, expires_at FROM parked_runs WHERE status = 'running' ORDER BY parked_at`)
      .map(({ approval_id, run }) => ({ ...(JSON.parse(run) as ParkedRun), approval_id }))
  }

  /** `unrun` is told of one that did not begin; what began has been told with its end. */
  done(approval_id: string, unrun: ApprovalRun | null): void {
    const { database, run_reports, unit } = this.#parts
    unit(() => {
      database.all('DELETE FROM parked_runs WHERE approval_id = ?', approval_id)
      if (unrun) run_reports.note(approval_id, unrun)
    })
  }

  #decided({ approval_id, run }: Row, { status, by, reason }: Decision): void {
    const { database, log } = this.#parts
    const change = status === 'approved' ? `UPDATE parked_runs SET status = 'running'` : 'DELETE FROM parked_runs'
    database.all(`${change} WHERE approval_id = ?`, approval_id)
    const { skill_id, version, trace_id } = JSON.parse(run) as ParkedRun
    log.append([{ ...scopeHead(), trace_id, kind: 'approval-decided', approval_id, skill_id, version, status, by, reason }])
  }

  #waiting(): Row[] {
    return this.#parts.database.all<Row>(
      `SELECT approval_id, run, told, expires_at FROM parked_runs WHERE status = 'waiting' ORDER BY parked_at`,
    )
  }

  #same({ skill_id, manifest_hash, inputs_hash, proposer }: ParkedRun): Row | undefined {
    return this.#waiting().find((row) => {
      const run = JSON.parse(row.run) as ParkedRun
      const same = run.skill_id === skill_id && run.manifest_hash === manifest_hash && run.inputs_hash === inputs_hash
      return same && run.proposer?.key_id === proposer?.key_id && row.expires_at > this.#parts.now()
    })
  }

  #any(): boolean {
    return this.#parts.database.first('SELECT 1 AS one FROM parked_runs LIMIT 1') !== undefined
  }

  /** Asks D1 what it was not asked yet; says whether it took that. */
  async #ask(): Promise<boolean> {
    const { env, scope, database, unit, log, requested_by } = this.#parts
    for (const { approval_id, run, expires_at } of this.#waiting().filter(({ told }) => told === 0)) {
      const { skill_id, version, manifest_hash, inputs_hash, inputs, why, proposer, self_approval, parked_at } = JSON.parse(
        run,
      ) as ParkedRun
      const asked = { requested_by: proposer?.name ?? requested_by(), requested_key: proposer?.key_id ?? null, self_approval }
      const shown = log.clean(inputs) as ParkedRun['inputs']
      const question = { id: approval_id, scope, skill_id, version, manifest_hash, inputs_hash, inputs: shown, why, ...asked }
      try {
        await this.#timely(() => insertApproval(env.DB, { ...question, created_at: parked_at, expires_at }))
      } catch (error) {
        warn({ message: 'D1 could not be asked for an approval, it will be again', scope, error })
        this.#look(RETRY_MS)
        return false
      }
      unit(() => database.all('UPDATE parked_runs SET told = 1 WHERE approval_id = ?', approval_id))
    }
    return true
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

/** Null while it waits. A question that D1 was asked and no longer has is one that nobody can answer. */
function decisionOn({ told, expires_at }: Row, approval: Approval | undefined, now: number): Decision | null {
  if (approval) return approval.status === 'pending' ? null : { status: approval.status, by: approval.decided_by, reason: approval.reason }
  return told === 1 && expires_at <= now ? { status: 'expired', by: null, reason: null } : null
}
