import { z } from 'zod'

const count = z.int()
const text = z.string()
const time = z.iso.datetime()

/**
 * `acted`: it decided. `held`: it fired and did not act. `left`: it ran and left the event to
 * others. `not_run`: it did not run on the event.
 */
export const verdicts = ['acted', 'held', 'left', 'not_run'] as const
export type Verdict = (typeof verdicts)[number]

const spoke = z.array(z.object({ says: text.describe('What the event has, in words.'), points: count.describe('Negative: against it.') }))
const side = z.object({ decision: text.nullable().describe('Null: decisions that it leaves to the slow path.'), points: count, spoke })
export type Side = z.infer<typeof side>

const points = z.object({
  best: side,
  second: side,
  lead: count.describe('By how many points the best is ahead.'),
  needed: count.nullable().describe('Null: it never takes the best.'),
})
export type Points = z.infer<typeof points>

const judged = z.object({
  at: time,
  event_id: text,
  trace_id: text,
  how: z.enum(['compared', 'audited']).describe('`compared`: in shadow mode, with what was decided. `audited`: after it acted.'),
  by: text.describe('The slow path, or the name of a person.'),
  agreed: z.boolean().nullable().describe('Null if it could not be compared.'),
})
export type Judged = z.infer<typeof judged>

const reflex = z.object({
  id: text,
  version: count.nullable(),
  verdict: z
    .enum(verdicts)
    .describe(
      '`acted`: it decided. `held`: it fired and did not act. `left`: it left the event to others. `not_run`: it did not run on it.',
    ),
  reasons: z.array(text).describe('Why, in sentences.'),
  would: z
    .string()
    .nullable()
    .describe('What it decides about the event today, in words. Null: nothing, or not known: it is not learned, or its code is hidden.'),
  points: points.nullable().describe('For a table of points: the two decisions with the most.'),
  judged: z.array(judged).describe('The newest comparisons and audits of the version, newest first.'),
  disagreed: judged.nullable().describe('The newest one that disagreed.'),
})
export type ReflexWhy = z.infer<typeof reflex>
/** The answer of a learned program for an event. `would`: in words; null: it leaves the event. */
export type ProgramWhy = Pick<ReflexWhy, 'would' | 'reasons' | 'points'>

export const decisionWhy = z
  .object({
    scope: text,
    event_id: text,
    event_type: text,
    decided: text.describe('What decided, in words.'),
    context: z
      .enum(['recorded', 'rebuilt'])
      .describe(
        '`rebuilt`: the context that reflexes saw is no longer kept, or none ran. It was built again from what the scope still has.',
      ),
    reflexes: z.array(reflex).describe('In the order of the chain, then versions that have left it.'),
  })
  .meta({ id: 'DecisionWhy' })
export type DecisionWhy = z.infer<typeof decisionWhy>

/** A scope's knowledge of a version and an event. Its code is explained elsewhere. */
export type ReflexFacts = {
  id: string
  version: number | null
  learned: boolean
  verdict: Verdict
  reasons: string[]
} & Pick<ReflexWhy, 'judged' | 'disagreed'>
/** The answer of the scope, without what only code tells. */
export type EventFacts = Pick<DecisionWhy, 'event_id' | 'event_type' | 'decided' | 'context'> & { saw: unknown; reflexes: ReflexFacts[] }
