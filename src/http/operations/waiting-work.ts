import { z } from '@hono/zod-openapi'
import { withIso } from '../../base/time.ts'
import { waitingWork } from '../../contract/reports/waiting-work.ts'
import { scopeName } from '../../core/event.ts'
import { listApprovals } from '../../features/approvals/store/approvals.ts'
import { listDeadLetters } from '../../store/dead-letters.ts'
import { storeOf } from '../../store/store.ts'
import { guard, json, problems, resource, routes } from '../describe/describe.ts'
import { pageLimit } from '../../contract/paging.ts'
import { deadLetterRoutes } from './dead-letters.ts'

const route = routes('Approvals')

const list = route('get /v1/waiting', 'listWaiting', 'List what waits for a person', {
  description:
    'Pending approvals and dead letters in the scopes that the key covers, newest first: ids, kinds, times and errors. ' +
    'Inputs, reasons and content are for keys with the role `operator`: `GET /v1/approvals`, `GET /v1/dlq`.',
  ...guard({ roles: ['viewer'] }),
  request: { query: z.object({ scope: scopeName.optional().describe('Only of this scope.'), limit: pageLimit(100, 20) }) },
  responses: { 200: json(waitingWork, 'The newest of both.'), ...problems(400) },
})

/** Dead letters, and the list of all that waits for a person. */
export const waitingWorkRoutes = resource()
  .route('/', deadLetterRoutes)
  .openapi(list, async (c) => {
    const query = { ...c.req.valid('query'), patterns: c.var.principal.scopes }
    const db = storeOf(c.env)
    const [approvals, letters] = await Promise.all([
      listApprovals(db, { ...query, status: 'pending', now: Date.now() }),
      listDeadLetters(db, query),
    ])
    return c.json(
      {
        approvals: approvals.items.map(({ id, scope, kind, skill_id, version, requested_by, created_at, expires_at }) =>
          withIso({ id, scope, kind, skill_id, version, requested_by, created_at, expires_at }, ['created_at', 'expires_at']),
        ),
        dead_letters: letters.items.map(({ id, origin, scope, event_id, type, error, attempts, dead_lettered_at }) =>
          withIso({ id, origin, scope, event_id, type, error, attempts, dead_lettered_at }, ['dead_lettered_at']),
        ),
        more: { approvals: approvals.more, dead_letters: letters.more },
      },
      200,
    )
  })
