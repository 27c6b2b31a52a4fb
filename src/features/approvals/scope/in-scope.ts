import { cleanEvent } from '../../../events/parse-event.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { inEachScope } from '../../../engine/installed.ts'
import { idIn, type SocketCommands } from '../../../engine/live/socket-command.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { fromZod } from '../../../contract/problem.ts'
import { storeOf } from '../../../store/store.ts'
import { proofOf } from '../../proof/scope/in-scope.ts'
import { approvalDecision, changedInputs, decided, verdictOf, type ApprovalDecision } from '../../../contract/approval.ts'
import { approvalTopics, decideApproval, findApproval, type DecisionTaken } from '../store/approvals.ts'
import { handleApprovalEvents, followRuns, handleApprovedRuns } from './approved-runs.ts'
import { ParkedRuns } from './approvals.ts'
import { callHead, handleCalls } from './held-calls.ts'
import { warn } from '../../../base/warn.ts'
import { ADMIN_KEY_ID, type DecidedBy } from '../../../contract/principal.ts'
import { validTraceparent } from '../../../events/traceparent.ts'
import { validKeys } from '../../../store/access/keys.ts'
import type { Lanes } from '../../../engine/effects/wiring.ts'
import { inBackground } from '../../../engine/log/failures.ts'

/** Runs and other questions of a scope that wait for a person. */
export const parkedRunsOf = inEachScope((scope: Collaborators) => new ParkedRuns({ ...scope, ...proofOf(scope) }))

/** Approvals in a scope: it asks, hears decisions, and does what was approved. */
export function approvalsInScope(scope: Collaborators): readonly ScopeFeature[] {
  const { outbox, effects, loop, hider } = scope
  const parked_runs = parkedRunsOf(scope)
  handleApprovedRuns(scope)
  handleApprovalEvents({ ...scope, accept: (event) => loop.accept([cleanEvent(event, hider)], 'approval') })
  handleCalls(scope)
  effects.onAnchored({
    ask: (call, why, place) => parked_runs.askCall({ call }, why, place),
    gather: (turn_id, call, why, place) => parked_runs.gather(turn_id, { call, why, head: callHead(place) }),
    endTurn: (unit, turn_id, asks) => parked_runs.endTurn(unit, turn_id, asks),
    sent: () => parked_runs.sent(),
  })
  const messages = decisionsOn(new ApprovalDecisions({ ...scope, parked_runs }))
  return [parked_runs, followRuns(outbox), { name: 'decisions on approvals', messages, topics: approvalTopics(storeOf(scope.env)) }]
}

const NOT_OPERATOR = { ok: false, message: 'deciding on approvals needs the role operator' } as const

/** Decisions over sockets. */
function decisionsOn(decisions: ApprovalDecisions): SocketCommands {
  const read: SocketCommands[string] = (input) => {
    const parsed = approvalDecision.safeParse(input)
    if (!parsed.success) return { ok: false, id: idIn(input, 'approval_id'), errors: fromZod(parsed.error) }
    const { data } = parsed
    return { ok: true, id: data.approval_id, take: async (by) => (by ? decisions.take(data, by) : NOT_OPERATOR) }
  }
  return { approve: read, reject: read }
}

type ApprovalDecisionsParts = Pick<Lanes, 'scope' | 'env' | 'now'> & {
  parked_runs: Pick<ParkedRuns, 'decided' | 'flaw'>
}
type DecisionAnswer = { ok: true; status: 'approved' | 'rejected' } | { ok: false; message: string }
type TakenDecision = {
  id: string
  status: 'approved' | 'rejected'
  reason: string | null
  edits: Record<string, unknown> | undefined
  traceparent: string | null
}

/** People's decisions on approvals, from the scope's sockets; D1 takes them, as over HTTP. */
class ApprovalDecisions {
  readonly #parts: ApprovalDecisionsParts

  constructor(parts: ApprovalDecisionsParts) {
    this.#parts = parts
  }

  /** The log entry follows the answer, and the run follows both. */
  async take(taken: ApprovalDecision, by: DecidedBy): Promise<DecisionAnswer> {
    const { type, approval_id: id, reason = null, traceparent } = taken
    const edits = type === 'approve' ? taken.edits : undefined
    const decision = { id, status: decided[type], reason, edits, traceparent: validTraceparent(traceparent) }
    try {
      const answer = await this.#decide(decision, by)
      if (!answer.ok) return { ok: false, message: answer.detail }
      inBackground(this.#apply(answer))
      return { ok: true, status: decision.status }
    } catch (error) {
      warn({ message: 'failed to record a decision', scope: this.#parts.scope, error })
      return { ok: false, message: 'the database is not responding; the decision may or may not have been recorded: send it again' }
    }
  }

  async #decide(decision: TakenDecision, by: DecidedBy): Promise<DecisionTaken | { ok: false; detail: string }> {
    const { scope, env, now, parked_runs } = this.#parts
    // A socket outlives its key for a minute or so.
    if (by.key_id !== ADMIN_KEY_ID && !(await validKeys(storeOf(env), [by.key_id], now())).has(by.key_id))
      return { ok: false, detail: 'the key of this socket was deleted or has expired' }
    const found = await findApproval(storeOf(env), decision.id, now())
    if (found?.scope !== scope) return { ok: false, detail: `there is no approval ${decision.id} in this scope` }
    const edits = changedInputs(found, decision.edits)
    const flaw = edits && found.status === 'pending' ? await parked_runs.flaw(decision.id, edits) : null
    if (flaw !== null) return { ok: false, detail: `the edit is refused: ${flaw}` }
    return decideApproval(storeOf(env), { ...decision, edits, by, now: now() })
  }

  async #apply({ approval }: Extract<DecisionTaken, { ok: true }>): Promise<void> {
    // The answer goes first. If the process dies in between, the poll finds the decision.
    await scheduler.wait(0)
    const verdict = verdictOf(approval)
    if (verdict) await this.#parts.parked_runs.decided(approval.id, verdict)
  }
}
