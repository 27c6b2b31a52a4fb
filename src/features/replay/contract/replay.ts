import { z } from 'zod'
import { effectChange, spent } from './what-if.ts'

/** The version of the shape of an exported file. A reader converts older ones. */
export const RECORDING_SCHEMA = 2

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
  unanswered: count.optional().describe('Model calls of a `what_if` whose answers are not recorded. Their tokens are not in `usage`.'),
})
export type ReplaySide = z.infer<typeof side>

export const replayMode = z
  .enum(['pinned', 'what_if'])
  .describe(
    '`pinned`: everything as it was recorded. `what_if`: with `changes`, all else as recorded. Neither calls a tool or acts; a model is asked only by a `what_if` with a `budget`.',
  )
export type ReplayMode = z.infer<typeof replayMode>

const equivalence = z
  .boolean()
  .nullable()
  .describe('True if every decision is the same, false if one differs. Null if none differs, but some are unknown.')

/** True if the replay decided as was recorded; null if some decision could not be made again. */
export function equivalenceOf({ changed, unknown }: { changed: number; unknown: number }): boolean | null {
  if (changed > 0) return false
  return unknown > 0 ? null : true
}

export const replayReport = z
  .object({
    trace_id: text,
    mode: replayMode,
    complete: z.boolean().describe('False if the trace was still running, or a part of it could not be read, when it was exported.'),
    equivalent: equivalence,
    compared: count.describe('Number of decisions and outputs compared.'),
    changed: count.describe('Number of those that differ.'),
    divergences: z.array(divergence),
    unknown: z.array(unknownDecision),
    recorded: side,
    replayed: side,
    changes_hash: text.optional().describe('SHA-256 of the canonical JSON of `changes`.'),
    effects: z.array(effectChange).optional().describe('Effects that only one side has.'),
    spent: spent.optional().describe('For answers of a model, if a `budget` was given.'),
  })
  .meta({ id: 'ReplayReport' })
export type ReplayReport = z.infer<typeof replayReport>

const example = decision.extend({
  trace_id: text,
  at: text,
  event_id: text.nullable(),
  path: text,
  recorded: z.unknown(),
  replayed: z.unknown(),
  why: text.describe('Why this one was chosen.'),
  alike: count.describe('Number of decisions that changed in the same way, this one included.'),
})
export type ReplayExample = z.infer<typeof example>

export const rangeReport = z
  .object({
    scope: text,
    mode: replayMode,
    since: text,
    until: text,
    equivalent: equivalence,
    entries: count.describe('Log entries read.'),
    events: count.describe('Events accepted in the range.'),
    same: count,
    changed: count,
    unknown: count,
    decisions: z
      .record(text, z.object({ same: count, changed: count, unknown: count }))
      .describe('By kind: `filter`, `reflex`, `turn`, `model`, `gate`, …'),
    reasons: z.array(z.object({ reason: text, count })).describe('The most frequent reasons of unknown decisions.'),
    effects: z.object({ appear: count, vanish: count }).describe('Effects that only one side has.'),
    examples: z.array(example).max(10).describe('The most telling changes, first those that the world outside would notice.'),
    recorded: side,
    replayed: side,
    changes_hash: text.optional(),
    spent: spent.optional(),
    next_cursor: text
      .nullable()
      .describe('Null if the range is complete. Else pass it as `cursor` for the rest, which starts from what was recorded.'),
  })
  .meta({ id: 'RangeReport', description: 'A replay of a time range. `duration_ms` of a side is the time that turns and actions took.' })
export type RangeReport = z.infer<typeof rangeReport>

export const rangeProgress = z.object({ entries: count, events: count, same: count, changed: count, unknown: count, at: text.nullable() })
export type RangeProgress = z.infer<typeof rangeProgress>

/** A trace or a range was decided again. It changed nothing but the log. */
export type ReplayEntry = {
  kind: 'replay-done'
  mode: 'pinned' | 'what_if'
  of: { trace_id: string } | { since: string; until: string }
  changes_hash?: string | undefined
  compared: number
  changed: number
  unknown: number
  by: string
}
