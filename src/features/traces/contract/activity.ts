import { z } from 'zod'
import { traceSummary } from '../../../contract/reports/trace.ts'

export const deciders = ['filter', 'reflex', 'decision', 'turn', 'nobody', 'person'] as const

export const activity = traceSummary
  .extend({
    words: z.string().describe('What was done, such as `blocked 203.0.113.9`. Of a trace that its scopes know no more, its event.'),
    decided_by: z
      .object({ by: z.enum(deciders), name: z.string().nullable().describe('The reflex or the decision model.') })
      .nullable()
      .describe('Null while nothing is decided. `nobody`: no filter passed it, or the condition for a turn did not hold.'),
    cost_usd: z.number().nullable().describe('Of its calls of models; null if the price of one is unknown.'),
  })
  .meta({ id: 'Activity', description: 'A trace in words, as the logs of its scopes have it.' })
export type Activity = z.infer<typeof activity>
