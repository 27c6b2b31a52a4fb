import { z } from 'zod'
import { scopeName } from '../../../core/event.ts'
import { act } from '../../../contract/reflex.ts'
import { evaluation } from '../../../contract/reports/reflex-report.ts'

export const newTrial = z
  .strictObject({
    scope: scopeName.describe('The scope of the buyer, whose account pays the fee.'),
    since: z.iso.datetime({ offset: true }).describe('It runs on what the scope recorded from this time on; at most 30 days ago.'),
    id: z.string().min(1).max(128).optional().describe('Made by the client. A repeated id pays no second fee.'),
  })
  .meta({ id: 'NewTrial' })
export type NewTrial = z.infer<typeof newTrial>

/** An evaluation without what would show the program: its actions, errors and fuel. */
export const trialReport = evaluation
  .pick({ contexts: true, fires: true, passes: true, agreement: true, missed: true, truncated: true })
  .extend({
    trial_id: z.string(),
    listing_id: z.string(),
    artifact: z.string(),
    scope: z.string(),
    since: z.iso.datetime(),
    fee: z.int(),
    disagreements: z
      .array(z.object({ event_id: z.string(), action_type: z.string(), decided: z.array(act) }))
      .describe('The first five, without the arguments of its actions.'),
    stages: z
      .record(z.string(), z.int())
      .nullable()
      .describe(
        'Of a skill: how many events it would have been applied to, and at which stage the gate refused the others. Null for a reflex.',
      ),
    would_save: z
      .object({ model_calls: z.number(), usd: z.number(), per_1000_events_usd: z.number() })
      .nullable()
      .describe('An estimate: its fires that agreed, at the average cost of a turn of the scope. Null without turns.'),
  })
  .meta({ id: 'TrialReport' })
export type TrialReport = z.infer<typeof trialReport>
