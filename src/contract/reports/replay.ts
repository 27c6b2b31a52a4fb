import { z } from 'zod'

const text = z.string()
const count = z.int()

const difference = z.object({
  path: text.describe('A JSON pointer into the decision or output.'),
  recorded: z.unknown(),
  replayed: z.unknown(),
})
export type Difference = z.infer<typeof difference>

const decision = z.object({ span_id: text, kind: text.describe('`filter`, `reflex`, `turn`, `model`, `gate`, …') })
const divergence = decision.extend(difference.shape)
export type Divergence = z.infer<typeof divergence>

const unknownDecision = decision.extend({ reason: text.describe('What the recording lacks.') })
export type UnknownDecision = z.infer<typeof unknownDecision>

const side = z.object({
  usage: z.object({ input_tokens: count, output_tokens: count, cost_usd: z.number().nullable(), model_calls: count }),
  effects: count.describe('Tool calls and other acts outside the decision.'),
  duration_ms: z.number(),
})
export type ReplaySide = z.infer<typeof side>

export const replayMode = z
  .enum(['pinned'])
  .describe('`pinned`: everything as it was recorded. It asks no model, calls no tool and writes nothing.')

export const replayReport = z
  .object({
    trace_id: text,
    mode: replayMode,
    equivalent: z.boolean().describe('True if nothing diverged. Unknown decisions do not count as divergences.'),
    compared: count.describe('Number of decisions and outputs compared.'),
    divergences: z.array(divergence),
    unknown: z.array(unknownDecision),
    recorded: side,
    replayed: side,
  })
  .meta({ id: 'ReplayReport' })
export type ReplayReport = z.infer<typeof replayReport>
