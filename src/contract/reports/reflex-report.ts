import { z } from 'zod'
import { action } from '../action.ts'
import { act, passes } from '../reflex.ts'

const count = z.int()
const percentiles = z.object({ p50: count, p90: count, p99: count, max: z.number() })
export type Percentiles = z.infer<typeof percentiles>

/** A histogram in buckets that grow by 2^(1/8), which give percentiles to about 4 %. */
export type Histogram = { buckets: Record<string, number>; count: number; max: number }

/** Counters of one version of a reflex, in one scope or several. */
const counts = {
  runs: count.describe('Includes runs in shadow mode.'),
  fired: count,
  passed: passes.describe('Runs that did not fire, by reason.'),
  held_back: count.describe('Fires suppressed by a cooldown or a rate limit.'),
  acted: count.describe('Actions that were carried out.'),
  failed: count.describe('Actions whose effect failed.'),
  shadow: z
    .object({ runs: count, fired: count, agreed: count, disagreed: count, undecided: count })
    .describe('Runs in shadow mode, and how their fires compare with the actual decisions. `undecided`: not comparable.'),
  overruled: count.describe('Actions that a turn or a person later undid.'),
  model_calls_saved: z.number(),
  tokens_saved: z.number(),
  cost_saved_usd: z.number(),
}
export type ReflexMetrics = z.infer<z.ZodObject<typeof counts>> & { fuel: Histogram; duration_us: Histogram }

export const reflexMetrics = z
  .object({
    ...counts,
    agreement: z.number().nullable().describe('Share of the compared fires in shadow mode that matched the actual decision.'),
    fuel: percentiles,
    duration_us: percentiles,
  })
  .meta({ id: 'ReflexMetrics' })
export type PresentedMetrics = z.infer<typeof reflexMetrics>

export const evaluation = z
  .object({
    contexts: z
      .object({ recorded: count, rebuilt: count, undecided: count })
      .describe(
        '`rebuilt`: nothing was recorded at the time, so scratch, thinking and recent actions are empty. `undecided`: no decision has been made yet.',
      ),
    fires: count,
    passes,
    agreement: z
      .object({ agreed: count, disagreed: count, not_compared: count, rate: z.number().nullable() })
      .describe('Firings compared with the recorded decision. `rate` is null if none could be compared.'),
    missed: count.describe('Contexts where it returned null although an action was taken.'),
    errors: z.array(z.object({ event_id: z.string(), message: z.string() })).describe('The first five.'),
    fuel: percentiles,
    disagreements: z.array(z.object({ event_id: z.string(), action, decided: z.array(act) })).describe('The first five.'),
    truncated: z.boolean().describe('The window exceeded 5,000 contexts or 400,000,000 units of fuel.'),
  })
  .meta({ id: 'Evaluation' })
export type EvaluationReport = Omit<z.infer<typeof evaluation>, 'truncated'>

/**
 * The audits of the acts of one kind since its proof, which `proof` identifies. `unaudited`: acts
 * since the last audit. `judged`: the last act of which an audit was answered; `doubted`: the acts
 * when one disagreed. `values`: acts outside since the last audit of one with this value. All three
 * are missing in older rows.
 */
export type AuditPace = {
  proof: number
  acts: number
  unaudited: number
  judged?: number
  doubted?: number
  next?: true
  values?: Readonly<Record<string, number>>
}
