import { cleanEvent } from '../../../events/parse-event.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { inEachScope } from '../../../engine/installed.ts'
import { idIn, type SocketCommands } from '../../../engine/live/socket-command.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { fromZod } from '../../../contract/problem.ts'
import { storeOf } from '../../../store/store.ts'
import { proofOf } from '../../proof/scope/in-scope.ts'
import { approvalDecision } from '../../../contract/approval.ts'
import { approvalTopics } from '../store/approvals.ts'
import { ApprovalDecisions } from './approval-decisions.ts'
import { handleApprovalEvents } from './approval-events.ts'
import { ParkedRuns } from './approvals.ts'
import { followRuns, handleApprovedRuns } from './approved-runs.ts'
import { handleCalls } from './held-calls.ts'

/** Runs and other questions of a scope that wait for a person. */
export const parkedRunsOf = inEachScope((scope: Collaborators) => new ParkedRuns({ ...scope, ...proofOf(scope) }))

/** Approvals in a scope: it asks, hears decisions, and does what was approved. */
export function approvalsInScope(scope: Collaborators): readonly ScopeFeature[] {
  const { outbox, effects, loop, hider } = scope
  const parked_runs = parkedRunsOf(scope)
  handleApprovedRuns(scope)
  handleApprovalEvents({ ...scope, accept: (event) => loop.accept([cleanEvent(event, hider)], 'approval') })
  handleCalls(scope)
  effects.onAnchored((call, why, place) => parked_runs.askCall({ call }, why, place))
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
