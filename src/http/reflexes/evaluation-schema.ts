import { z } from '@hono/zod-openapi'
import { percentiles } from './metrics-schemas.ts'
import { action } from './schemas.ts'

const count = z.int()
const act = z
  .discriminatedUnion('act', [
    z.object({ act: z.literal('call_tool'), tool: z.string(), idempotence_key: z.string().nullable(), arguments_hash: z.string() }),
    z.object({ act: z.literal('emit_event'), event_type: z.string() }),
    z.object({ act: z.literal('reply'), content: z.string() }),
    z.object({ act: z.literal('set_scratch'), key: z.string(), value: z.unknown() }),
    z.object({ act: z.literal('run_skill'), skill_id: z.string(), inputs_hash: z.string() }),
    z.object({ act: z.literal('other'), action_type: z.string() }),
  ])
  .openapi('Act', { description: 'What was done about an event, as far as it can be compared.' })

export const evaluation = z
  .object({
    contexts: z.object({ recorded: count, rebuilt: count, undecided: count }).meta({
      description:
        '`rebuilt`: nothing was recorded then, so that scratch, thinking and recent actions are empty. `undecided`: nothing is decided yet.',
    }),
    fires: count,
    passes: z.object({ null: count, error: count, limit: count, invalid_action: count }),
    agreement: z
      .object({ agreed: count, disagreed: count, not_compared: count, rate: z.number().nullable() })
      .meta({ description: 'Fires, held against what was decided then.' }),
    missed: count.meta({ description: 'Where it passed, and something was done.' }),
    errors: z.array(z.object({ event_id: z.string(), message: z.string() })).meta({ description: 'The first five.' }),
    fuel: percentiles,
    disagreements: z.array(z.object({ event_id: z.string(), action, decided: z.array(act) })).meta({ description: 'The first five.' }),
    truncated: z.boolean().meta({ description: 'There was more than 5,000 contexts, or 400,000,000 units of fuel, allow.' }),
  })
  .openapi('Evaluation')
