import type { Feature } from '../../feature.ts'
import { storeOf } from '../../store/store.ts'
import { approvalRoutes } from './http/approvals.ts'
import { approvalsInScope, parkedRunsOf } from './scope/in-scope.ts'
import { expireApprovals, forgetApprovals } from './store/approvals.ts'
import { list, listWaiting } from './operations/approvals.ts'

/** Questions to a person: on runs of skills, calls of tools, promotions and activations. */
export const approvals: Feature = {
  name: 'approvals',
  inScope: approvalsInScope,
  calls: {
    approvalDecided: (scope, id, verdict) => (verdict ? parkedRunsOf(scope).decided(id, verdict) : parkedRunsOf(scope).poll()),
    approvalOutdated: async (scope, id) => parkedRunsOf(scope).outdated(id),
  },
  operations: [list, listWaiting],
  routes: () => [approvalRoutes],
  sweeps: [{ name: 'expiring approvals', run: (env, now) => expireApprovals(storeOf(env), now) }],
  forgets: [{ name: 'approvals', forget: forgetApprovals }],
}
