import { withIso } from '../../base/time.ts'
import { listWaiting } from '../../features/approvals/operations/approvals.ts'
import { listApprovals } from '../../features/approvals/store/approvals.ts'
import { listDeadLetters } from '../../store/dead-letters.ts'
import { storeOf } from '../../store/store.ts'
import { resource, serve } from '../describe/operation.ts'

export const waitingWorkRoutes = resource().openapiRoutes([
  serve(listWaiting, async (c, { query: asked }) => {
    const query = { ...asked, patterns: c.var.principal.scopes }
    const db = storeOf(c.env)
    const [approvals, letters] = await Promise.all([
      listApprovals(db, { ...query, status: 'pending', now: Date.now() }),
      listDeadLetters(db, query),
    ])
    return {
      approvals: approvals.items.map(({ id, scope, kind, skill_id, version, requested_by, created_at, expires_at }) =>
        withIso({ id, scope, kind, skill_id, version, requested_by, created_at, expires_at }, ['created_at', 'expires_at']),
      ),
      dead_letters: letters.items.map(({ id, origin, scope, event_id, type, error, attempts, dead_lettered_at }) =>
        withIso({ id, origin, scope, event_id, type, error, attempts, dead_lettered_at }, ['dead_lettered_at']),
      ),
      more: { approvals: approvals.more, dead_letters: letters.more },
    }
  }),
])
