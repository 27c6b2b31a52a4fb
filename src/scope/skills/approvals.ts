import { withDeadline } from '../../base/deadline.ts'
import { warn } from '../../base/warn.ts'
import type { Approval } from '../../contract/approval.ts'
import type { Env } from '../../env.ts'
import type { Parked, ParkedRun } from '../../skills/session/ports.ts'
import { findApprovals, insertApproval } from '../../store/approvals.ts'
import type { Alarm } from '../alarm.ts'
import type { Database } from '../database.ts'
import type { Jobs } from '../jobs.ts'
import type { Log } from '../log.ts'
import { scopeHead } from '../spans.ts'
import type { Unit, UnitOfWork } from '../unit.ts'

/** Poll interval for decisions, in case a notification was lost. */
const POLL_MS = 60_000
const RETRY_MS = 5000
const TIMEOUT_MS = 10_000
/** Limits the storage and the reviewer's list, since a model may propose repeatedly. */
const MOST_WAITING = 100

type WaitingRow = { approval_id: string; run: string; told: number; expires_at: number }
type Verdict = { status: Exclude<Approval['status'], 'pending'>; by: string | null; reason: string | null }
type ApprovalParts = {
  scope: string
  env: Env
  database: Database
  jobs: Jobs
  unit: UnitOfWork
  log: Log
  alarm: Alarm
  requested_by: () => string
  now: () => number
}

/**
 * Runs that wait for an approval: first a row here, then the question in D1, where exactly one
 * decision is taken. The row goes in the unit that logs the decision; if it is an approval, the
 * unit also adds the job that begins the run.
 *
 * If the process dies before D1 has the question, it is asked again. After the decision, the next
 * poll finds it.
 */
export class ParkedRuns {
  readonly #parts: ApprovalParts
  #poll_at: number | null
  #polling = false
  #poll_again = false

  constructor(parts: ApprovalParts) {
    this.#parts = parts
    this.#poll_at = this.#any() ? parts.now() : null
    parts.alarm.source(() => this.#poll_at)
  }

  get due(): boolean {
    return this.#poll_at !== null && this.#poll_at <= this.#parts.now()
  }

  /**
   * Reuses the request of the same key or agent. `record` is called in the unit that parks the run.
   */
  async park(run: ParkedRun, record: (unit: Unit, approval_id: string) => void): Promise<Parked> {
    const { unit } = this.#parts
    const earlier = this.#same(run)
    if (earlier) return { ok: true, approval_id: earlier.approval_id, asked_before: true }
    if (this.#waiting().length >= MOST_WAITING) {
      return { ok: false, detail: `${MOST_WAITING} runs of this scope wait for an approval already: decide on some of them first` }
    }
    const approval_id = crypto.randomUUID()
    unit((parking) => {
      const sql = 'INSERT INTO parked_runs (approval_id, run, expires_at, parked_at) VALUES (?, ?, ?, ?)'
      parking.all(sql, approval_id, JSON.stringify(run), run.expires_at, parking.now)
      record(parking, approval_id)
    })
    this.#pollIn(POLL_MS)
    await this.#ask()
    return { ok: true, approval_id, asked_before: false }
  }

  /** Applies recorded decisions. Calls during a poll share the next one. */
  async poll(): Promise<void> {
    this.#poll_again = true
    if (this.#polling) return
    this.#polling = true
    const { scope, jobs } = this.#parts
    try {
      while (this.#poll_again) {
        this.#poll_again = false
        await this.#pollOnce()
        jobs.run()
      }
    } catch (error) {
      warn({ message: 'failed to poll approvals; will retry', scope, error })
    } finally {
      this.#polling = false
    }
  }

  async #pollOnce(): Promise<void> {
    const { env, unit, jobs, alarm, now } = this.#parts
    this.#poll_at = now() + POLL_MS
    // If D1 accepts no request, skip the query: a second timeout would outlast the next poll.
    if (!(await this.#ask())) return
    const ids = this.#waiting().map(({ approval_id }) => approval_id)
    const found = ids.length === 0 ? [] : await this.#timely(() => findApprovals(env.DB, ids, now()))
    const approvals = new Map(found.map((approval) => [approval.id, approval]))
    unit((deciding) => {
      for (const row of this.#waiting()) {
        const verdict = verdictOn(row, approvals.get(row.approval_id), deciding.now)
        if (verdict) this.#apply(deciding, row, verdict)
      }
      // Each poll retries an approved run that waits for another one.
      jobs.hurry(deciding, 'approved-run')
    })
    if (!this.#any()) this.#poll_at = null
    alarm.rearm()
  }

  #apply(unit: Unit, { approval_id, run }: WaitingRow, { status, by, reason }: Verdict): void {
    const parked = JSON.parse(run) as ParkedRun
    unit.all('DELETE FROM parked_runs WHERE approval_id = ?', approval_id)
    if (status === 'approved') this.#parts.jobs.add(unit, { kind: 'approved-run', key: approval_id, payload: parked })
    const { skill_id, version, trace_id } = parked
    unit.log({ ...scopeHead(), trace_id, kind: 'approval-decided', approval_id, skill_id, version, status, by, reason })
  }

  #waiting(): WaitingRow[] {
    return this.#parts.database.all<WaitingRow>('SELECT approval_id, run, told, expires_at FROM parked_runs ORDER BY parked_at')
  }

  #same({ skill_id, manifest_hash, inputs_hash, proposer }: ParkedRun): WaitingRow | undefined {
    return this.#waiting().find((row) => {
      const run = JSON.parse(row.run) as ParkedRun
      const same = run.skill_id === skill_id && run.manifest_hash === manifest_hash && run.inputs_hash === inputs_hash
      return same && run.proposer?.key_id === proposer?.key_id && row.expires_at > this.#parts.now()
    })
  }

  #any(): boolean {
    return this.#parts.database.first('SELECT 1 AS one FROM parked_runs LIMIT 1') !== undefined
  }

  /** Sends D1 the requests that it lacks. Returns false if one failed. */
  async #ask(): Promise<boolean> {
    const { env, scope, unit, log, requested_by } = this.#parts
    for (const { approval_id, run, expires_at } of this.#waiting().filter(({ told }) => told === 0)) {
      const parked = JSON.parse(run) as ParkedRun
      const { skill_id, version, manifest_hash, inputs_hash, inputs, why, proposer, self_approval, parked_at } = parked
      const asked = { requested_by: proposer?.name ?? requested_by(), requested_key: proposer?.key_id ?? null, self_approval }
      const shown = log.clean(inputs) as ParkedRun['inputs']
      const question = { id: approval_id, scope, skill_id, version, manifest_hash, inputs_hash, inputs: shown, why, ...asked }
      try {
        await this.#timely(() => insertApproval(env.DB, { ...question, created_at: parked_at, expires_at }))
      } catch (error) {
        warn({ message: 'failed to ask D1 for an approval; will retry', scope, error })
        this.#pollIn(RETRY_MS)
        return false
      }
      unit((asking) => asking.all('UPDATE parked_runs SET told = 1 WHERE approval_id = ?', approval_id))
    }
    return true
  }

  #pollIn(ms: number): void {
    const { alarm, now } = this.#parts
    this.#poll_at = Math.min(this.#poll_at ?? Number.POSITIVE_INFINITY, now() + ms)
    alarm.by(this.#poll_at)
  }

  #timely<Result>(work: () => Promise<Result>): Promise<Result> {
    return withDeadline(work, { timeout_ms: TIMEOUT_MS, what: 'D1' })
  }
}

/** Null while it waits. A question that D1 received and no longer has can no longer be answered. */
function verdictOn({ told, expires_at }: WaitingRow, approval: Approval | undefined, now: number): Verdict | null {
  if (approval) return approval.status === 'pending' ? null : { status: approval.status, by: approval.decided_by, reason: approval.reason }
  return told === 1 && expires_at <= now ? { status: 'expired', by: null, reason: null } : null
}
