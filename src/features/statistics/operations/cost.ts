import { z } from 'zod'
import { operations } from '../../../contract/operation.ts'
import { instant, scopePath } from '../../../contract/operations/shared.ts'
import { scopeCost } from '../contract/cost.ts'
import { buckets } from '../contract/statistics.ts'

export const cost = operations({ tag: 'Scopes', roles: ['viewer'], scoped: true })(
  'get /v1/scopes/{scope}/cost',
  'estimateScopeCost',
  'Estimate the cost of a scope',
  {
    description:
      'Computed from what the scope counted: the recorded cost of its model calls, and an estimate of what the platform bills for its events, turns and effects. ' +
      'It lags like the statistics: an hour by day, 10 minutes by hour. docs/cost.md has the rates.',
    params: scopePath,
    query: z.object({
      bucket: z.enum(buckets).default('day').describe('The buckets that are summed. `all`: since the scope exists.'),
      since: instant.optional().describe('Default: an hour (minute), a day (hour) or 30 days (day) before `until`.'),
      until: instant.optional().describe('Exclusive; default: now.'),
    }),
    answers: { 200: [scopeCost, 'The estimate.'] },
  },
)
