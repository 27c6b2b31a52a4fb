import { warn } from '../../../base/warn.ts'
import { decided, verdictOf, type ApprovalDecision } from '../../../contract/approval.ts'
import { ADMIN_KEY_ID, type DecidedBy } from '../../../contract/principal.ts'
import { validTraceparent } from '../../../events/traceparent.ts'
import { decideApproval, findApproval, type DecisionTaken } from '../store/approvals.ts'
import { findKey } from '../../../store/access/keys.ts'
import { storeOf } from '../../../store/store.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { inBackground } from '../../../engine/log/failures.ts'
import type { ParkedRuns } from './approvals.ts'

type ApprovalDecisionsParts = Pick<Lanes, 'scope' | 'env' | 'now'> & {
  parked_runs: Pick<ParkedRuns, 'decided'>
}
export type DecisionAnswer = { ok: true; status: 'approved' | 'rejected' } | { ok: false; message: string }
type TakenDecision = { id: string; status: 'approved' | 'rejected'; reason: string | null; traceparent: string | null }

/** People's decisions on approvals, from the scope's sockets; D1 takes them, as over HTTP. */
export class ApprovalDecisions {
  readonly #parts: ApprovalDecisionsParts

  constructor(parts: ApprovalDecisionsParts) {
    this.#parts = parts
  }

  /** The log entry follows the answer, and the run follows both. */
  async take({ type, approval_id, reason, traceparent }: ApprovalDecision, by: DecidedBy): Promise<DecisionAnswer> {
    const decision = { id: approval_id, status: decided[type], reason: reason ?? null, traceparent: validTraceparent(traceparent) }
    try {
      const taken = await this.#decide(decision, by)
      if (!taken.ok) return { ok: false, message: taken.detail }
      inBackground(this.#apply(taken))
      return { ok: true, status: decision.status }
    } catch (error) {
      warn({ message: 'failed to record a decision', scope: this.#parts.scope, error })
      return { ok: false, message: 'the database is not responding; the decision may or may not have been recorded: send it again' }
    }
  }

  async #decide(decision: TakenDecision, by: DecidedBy): Promise<DecisionTaken | { ok: false; detail: string }> {
    const { scope, env, now } = this.#parts
    // A socket outlives its key for a minute or so.
    if (by.key_id !== ADMIN_KEY_ID && !(await findKey(storeOf(env), by.key_id)))
      return { ok: false, detail: 'the key of this socket was deleted' }
    const found = await findApproval(storeOf(env), decision.id, now())
    if (found?.scope !== scope) return { ok: false, detail: `there is no approval ${decision.id} in this scope` }
    return decideApproval(storeOf(env), { ...decision, by, now: now() })
  }

  async #apply({ approval }: Extract<DecisionTaken, { ok: true }>): Promise<void> {
    // The answer goes first. If the process dies in between, the poll finds the decision.
    await scheduler.wait(0)
    const verdict = verdictOf(approval)
    if (verdict) await this.#parts.parked_runs.decided(approval.id, verdict)
  }
}
