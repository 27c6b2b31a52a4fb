import { warn } from '../../base/warn.ts'
import { decided, type ApprovalDecision, type Decider } from '../../contract/control-plane/approval.ts'
import { ADMIN_KEY_ID } from '../../contract/principal.ts'
import { validTraceparent } from '../../events/traceparent.ts'
import { decideApproval, findApproval } from '../../store/approvals.ts'
import { findKey } from '../../store/access/keys.ts'
import { storeOf } from '../../store/store.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { ParkedRuns } from './approvals.ts'

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
