import { z } from 'zod'
import { pagedOfPacks, pageLimit } from '../../../contract/paging.ts'
import { activity, deciders } from '../contract/activity.ts'
import { activities } from '../contract/lists.ts'
import { operation, traceFilters } from './traces.ts'

export const listActivity = operation(activities.at, 'listActivity', 'List what was done, in words, newest first', {
  description:
    'Traces as `GET /v1/traces` lists them, with a sentence, who decided, and the cost. These are read from the logs of the scopes, for at most ten pages a ' +
    'request: `q`, `decider` and `min_cost_usd` may leave a page short, or empty, and `next_cursor` continues the search.',
  query: z.object({
    ...traceFilters,
    q: z
      .string()
      .max(200)
      .optional()
      .describe('A text in the words, the decider, the scope, or the type or id of the event; case does not matter.'),
    decider: z.enum(deciders).optional().describe('What decided the event.'),
    min_cost_usd: z.coerce.number<string>().min(0).optional().describe('What cost at least as much, or whose price is unknown.'),
    limit: pageLimit(100),
  }),
  answers: { 200: [pagedOfPacks(activity), 'A page.'] },
  command: {
    usage: 'activity',
    help: 'List what was done, in words, newest first',
    flags: activities.flags,
    table: {
      columns: activities.columns,
      empty: 'Nothing matches.',
      most: 100,
      limit: 20,
    },
  },
})
