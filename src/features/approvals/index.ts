import type { JsonFields } from '../../base/json.ts'
import type { Feature } from '../../feature.ts'
import { storeOf } from '../../store/store.ts'
import { approvalRoutes } from './http/approvals.ts'
import { approvalsInScope, parkedRunsOf } from './scope/in-scope.ts'
import { expireApprovals, forgetApprovals } from './store/approvals.ts'
import { waitingAlerts } from './events/alerts.ts'
import * as tables from './store/tables.ts'
import { list, listWaiting } from './operations/approvals.ts'
import type { ApprovalVerdict, WaitingStep } from '../../contract/approval.ts'

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /**
     * Hands the scope a decision that D1 has taken. It is applied once: a scope that no longer asks
     * ignores it. Without a verdict, the scope looks in D1 for decisions that it missed.
     */
    approvalDecided(id: string, verdict?: ApprovalVerdict): Promise<void>
    /** The reason why a question about a reflex is outdated; null: it is not. */
    approvalOutdated(id: string): Promise<string | null>
    /** Why a question cannot be answered with these inputs; null: it can. */
    approvalFlaw(id: string, edits: JsonFields): Promise<string | null>
    /** The steps of a run that waits, with what named their arguments. */
    approvalSteps(id: string): Promise<WaitingStep[]>
  }
}

/** Questions to a person: on runs of skills, calls of tools, promotions and activations. */
export const approvals = {
  name: 'approvals',
  inScope: approvalsInScope,
  calls: {
    approvalDecided: (scope, id, verdict) => (verdict ? parkedRunsOf(scope).decided(id, verdict) : parkedRunsOf(scope).poll()),
    approvalOutdated: async (scope, id) => parkedRunsOf(scope).outdated(id),
    approvalFlaw: (scope, id, edits) => parkedRunsOf(scope).flaw(id, edits),
    approvalSteps: (scope, id) => parkedRunsOf(scope).steps(id),
  },
  operations: [list, listWaiting],
  routes: () => [approvalRoutes],
  tables,
  alerts: waitingAlerts,
  sweeps: [{ name: 'expiring approvals', run: (env, now) => expireApprovals(storeOf(env), now) }],
  forgets: [{ name: 'approvals', forget: forgetApprovals }],
} satisfies Feature
