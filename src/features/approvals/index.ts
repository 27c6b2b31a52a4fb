import type { Feature } from '../../feature.ts'
import { storeOf } from '../../store/store.ts'
import { approvalRoutes } from './http/approvals.ts'
import { expireApprovals, forgetApprovals } from './store/approvals.ts'
import { list, listWaiting } from './operations/approvals.ts'

/** Questions to a person: on runs of skills, calls of tools, promotions and activations. */
export const approvals: Feature = {
  name: 'approvals',
  calls: {
    approvalDecided: ({ parked_runs }, id, verdict) => (verdict ? parked_runs.decided(id, verdict) : parked_runs.poll()),
    approvalOutdated: async ({ parked_runs }, id) => parked_runs.outdated(id),
  },
  operations: [list, listWaiting],
  routes: () => [approvalRoutes],
  sweeps: [{ name: 'expiring approvals', run: (env, now) => expireApprovals(storeOf(env), now) }],
  forgets: [{ name: 'approvals', forget: forgetApprovals }],
}
