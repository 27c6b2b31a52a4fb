import { z } from 'zod'
import { buckets } from './statistics.ts'

const range = z.object({ low: z.number(), high: z.number() })

export const scopeCost = z
  .object({
    scope: z.string(),
    bucket: z.enum(buckets),
    since: z.iso.datetime(),
    until: z.iso.datetime(),
    counts: z
      .object({
        events: z.int(),
        turns: z.int(),
        turn_seconds: z.number(),
        effects: z.int(),
        model_calls: z.int(),
        unpriced_model_calls: z.int().describe('Model calls whose price is unknown: `model_usd` leaves them out.'),
        input_tokens: z.int(),
        output_tokens: z.int(),
        decided_by_reflexes: z.int(),
        left_alone: z.int().describe('Of these, events on which reflexes decided to do nothing.'),
      })
      .describe('Counted by the scope; the estimate is computed from these numbers alone.'),
    model_usd: z.number().describe('The recorded cost of the model calls, by the list price of each model.'),
    platform_usd: range.describe(
      'Estimated cost of the platform: rows, alarms, requests and storage. `low` if events arrive in batches, `high` if each arrives alone.',
    ),
    total_usd: range,
    per_event_usd: range.nullable().describe('The total by event; null without events.'),
    saved_usd: z.number().describe('What reflexes saved in model calls, by the average turn of the scope.'),
    most_missed: z
      .int()
      .nullable()
      .describe(
        'The most of `left_alone` on which the slow path would have acted, with 95 % confidence, by audits drawn by chance; null without any.',
      ),
    basis: z.string().describe('How the estimate is computed.'),
  })
  .meta({ id: 'ScopeCost' })
export type ScopeCost = z.infer<typeof scopeCost>
