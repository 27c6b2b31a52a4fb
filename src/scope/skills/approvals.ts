import { warn } from '../../base/warn.ts'
import { type Approval, type ApprovalRequest, decided, type ApprovalDecision, type Decider } from '../../contract/approval.ts'
import { parkedBefore } from '../../skills/session/approval.ts'
import type { Parked, ParkedRun } from '../../skills/session/ports.ts'
import { findApprovals, decideApproval, findApproval } from '../../store/approvals.ts'
import { storeOf } from '../../store/store.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import { validTraceparent } from '../../events/traceparent.ts'
import { approvalHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import type { Lanes } from '../effects/wiring.ts'
import { ADMIN_KEY_ID } from '../../contract/principal.ts'
import { findKey } from '../../store/keys.ts'

/** Poll interval for decisions, in case a notification was lost. */
const POLL_MS = 60_000
const RETRY_MS = 5000

/** `head`: the span whose proposal it was. */
export type HeldRun = ParkedRun & { head: EntryHead }
type WaitingRow = { approval_id: string; run: string; expires_at: number }
type Verdict = { status: Exclude<Approval['status'], 'pending'>; by: string | null; reason: string | null; traceparent: string | null }
type ApprovalParts = Pick<Lanes, 'scope' | 'env' | 'database' | 'jobs' | 'outbox' | 'unit' | 'log' | 'alarm' | 'agent' | 'now'>

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

  /** Reuses the request of the same key or agent. `record` is called in the unit that parks. */
  async park(run: HeldRun, record: (unit: Unit, approval_id: string) => void): Promise<Parked> {
    const { unit } = this.#parts
    const waiting = this.#waiting().map(({ run: parked, approval_id }) => ({ ...(JSON.parse(parked) as HeldRun), approval_id }))
    const known = parkedBefore(waiting, run, this.#parts.now())
    if (known) return known
    const approval_id = crypto.randomUUID()
    unit((parking) => {
      const sql = 'INSERT INTO parked_runs (approval_id, run, expires_at, parked_at) VALUES (?, ?, ?, ?)'
      parking.all(sql, approval_id, JSON.stringify(run), run.expires_at, parking.now)
      this.#ask(parking, approval_id, run)
      record(parking, approval_id)
    })
    this.#pollIn(POLL_MS)
    await this.#parts.outbox.push('approvals')
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
    const { env, outbox, unit, jobs, alarm, now } = this.#parts
    this.#poll_at = now() + POLL_MS
    // If D1 accepts no request, skip the query: a second timeout would outlast the next poll.
    if (!(await outbox.push('approvals'))) return this.#pollIn(RETRY_MS)
    const ids = this.#waiting().map(({ approval_id }) => approval_id)
    const found = ids.length === 0 ? [] : await findApprovals(storeOf(env), ids, now())
    const approvals = new Map(found.map((approval) => [approval.id, approval]))
    unit((deciding) => {
      for (const row of this.#waiting()) {
        const verdict = this.#verdictOn(row, approvals.get(row.approval_id))
        if (verdict) this.#apply(deciding, row, verdict)
      }
      // Each poll retries an approved run that waits for another one.
      jobs.hurry(deciding, 'approved-run')
    })
    if (!this.#any()) this.#poll_at = null
    alarm.rearm()
  }

  #apply(unit: Unit, { approval_id, run }: WaitingRow, { status, by, reason, traceparent }: Verdict): void {
    const parked = JSON.parse(run) as HeldRun
    unit.all('DELETE FROM parked_runs WHERE approval_id = ?', approval_id)
    if (status === 'approved') this.#parts.jobs.add(unit, { kind: 'approved-run', key: approval_id, payload: parked })
    const { proposal_id, skill_id, version, head, parked_at } = parked
    const span = { ...approvalHead(head, { proposal_id, approval_id }), duration_ms: unit.now - parked_at }
    unit.log({ ...span, kind: 'approval-decided', approval_id, skill_id, version, status, by, reason, traceparent })
  }

  #waiting(): WaitingRow[] {
    return this.#parts.database.all<WaitingRow>('SELECT approval_id, run, expires_at FROM parked_runs ORDER BY parked_at')
  }

  #any(): boolean {
    return this.#parts.database.first('SELECT 1 AS one FROM parked_runs LIMIT 1') !== undefined
  }

  /** Puts the request that a reviewer reads into the outbox. */
  #ask(unit: Unit, approval_id: string, run: ParkedRun): void {
    const { scope, log, outbox, agent } = this.#parts
    const { skill_id, version, manifest_hash, inputs_hash, inputs, why, proposer, self_approval, parked_at, expires_at } = run
    const asked = { requested_by: proposer?.name ?? `agent:${agent().name}`, requested_key: proposer?.key_id ?? null, self_approval }
    const shown = log.clean(inputs) as ParkedRun['inputs']
    const question = { id: approval_id, scope, skill_id, version, manifest_hash, inputs_hash, inputs: shown, why, ...asked }
    outbox.put(unit, 'approvals', approval_id, { ...question, created_at: parked_at, expires_at } satisfies ApprovalRequest)
  }

  #pollIn(ms: number): void {
    const { alarm, now } = this.#parts
    this.#poll_at = Math.min(this.#poll_at ?? Number.POSITIVE_INFINITY, now() + ms)
    alarm.by(this.#poll_at)
  }

  /** Null while it waits. A question that D1 received and no longer has cannot be answered. */
  #verdictOn({ approval_id, expires_at }: WaitingRow, approval: Approval | undefined): Verdict | null {
    const { outbox, now } = this.#parts
    if (approval)
      return approval.status === 'pending'
        ? null
        : { status: approval.status, by: approval.decided_by, reason: approval.reason, traceparent: approval.traceparent }
    return expires_at <= now() && outbox.get('approvals', approval_id) === undefined
      ? { status: 'expired', by: null, reason: null, traceparent: null }
      : null
  }
}

type Parts = Pick<Lanes, 'scope' | 'env' | 'now'> & {
  parked: Pick<ParkedRuns, 'poll'>
}
export type DecisionAnswer = { ok: true; status: 'approved' | 'rejected' } | { ok: false; message: string }

/** Decisions on approvals from this scope's sockets. They are taken in D1, as over HTTP. */
export class Decisions {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The log entry follows the answer, and the run follows both. */
  async take({ type, approval_id, reason, traceparent }: ApprovalDecision, by: Decider): Promise<DecisionAnswer> {
    const { scope, parked } = this.#parts
    const decision = { id: approval_id, status: decided[type], reason: reason ?? null, traceparent: validTraceparent(traceparent) }
    try {
      const answer = await this.#decide(decision, by)
      if (answer.ok) void parked.poll()
      return answer
    } catch (error) {
      warn({ message: 'failed to record a decision', scope, error })
      return { ok: false, message: 'the database is not responding; the decision may or may not have been recorded: send it again' }
    }
  }

  async #decide(
    decision: { id: string; status: 'approved' | 'rejected'; reason: string | null; traceparent: string | null },
    by: Decider,
  ): Promise<DecisionAnswer> {
    const { scope, env, now } = this.#parts
    // A socket outlives its key for a minute or so.
    if (by.key_id !== ADMIN_KEY_ID && !(await findKey(storeOf(env), by.key_id)))
      return { ok: false, message: 'the key of this socket was deleted' }
    const found = await findApproval(storeOf(env), decision.id, now())
    if (found?.scope !== scope) return { ok: false, message: `there is no approval ${decision.id} in this scope` }
    const taken = await decideApproval(storeOf(env), { ...decision, by, now: now() })
    return taken.ok ? { ok: true, status: decision.status } : { ok: false, message: taken.detail }
  }
}
