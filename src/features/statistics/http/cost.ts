import { iso } from '../../../base/time.ts'
import measured from './measured.json' with { type: 'json' }
import { cost } from '../operations/cost.ts'
import type { ScopeCost } from '../contract/cost.ts'
import type { MetricSums } from '../contract/statistics.ts'
import { sumStatistics } from '../store/query.ts'
import { storeOf } from '../../../store/store.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { rangeOf } from './statistics.ts'
import { mostMissed } from './statistics-metrics.ts'

const KEYS = [
  'accepted',
  'turns',
  'turn_time_ms',
  'effects',
  'model_calls',
  'unpriced_calls',
  'input_tokens',
  'output_tokens',
  'model_cost_usd',
  'decided',
  'saved_cost_usd',
  'left_alone',
  'left_alone_audits',
  'left_alone_missed',
] as const

export const costRoutes = resource().openapiRoutes([
  serve(cost, async (c, { query: { bucket, ...times } }) => {
    const { scope } = c.var
    const { since, until } = rangeOf(bucket, times)
    const range = { family: 'scope' as const, bucket, since, until, patterns: [scope], keys: KEYS, by: null }
    const found = await sumStatistics(storeOf(c.env), range)
    const sums: Record<string, number> = {}
    for (const { key, value } of found) sums[key] = (sums[key] ?? 0) + value
    return { scope, bucket, since: iso(since), until: iso(until), ...costOf(sums) }
  }),
])

type Range = { low: number; high: number }

/** Dollars per million such events, as `npm run bench -- --only cost --write` has measured them. */
function measuredFor(event: string): Range {
  const of = (sent: string) => measured.find((line) => line.event === event && line.sent === sent)?.dollars ?? Number.NaN
  return { low: of('in batches'), high: of('alone') }
}
const less = (one: Range, other: Range): Range => ({ low: rounded(one.low - other.low), high: rounded(one.high - other.high) })
/** A turn may cost nothing: chance in a measurement is no credit. */
const rounded = (dollars: number): number => Math.max(0, Math.round(dollars * 10) / 10)

const filtered = measuredFor('filtered out, by the queue')
/**
 * Dollars per million: `low` in batches, `high` alone. A turn and an effect are the difference that
 * they make to an event.
 */
export const rates = {
  event: filtered,
  turn: less(measuredFor('considered by a turn that says no, by the queue'), filtered),
  effect: less(measuredFor('given to a tool by a reflex'), measuredFor('answered by a reflex')),
  /** An object in memory for a second, with 128 MB. */
  turn_second: 1.6,
} as const

/** The estimate from the sums of a scope's statistics. */
export function costOf(sums: MetricSums): Omit<ScopeCost, 'scope' | 'bucket' | 'since' | 'until'> {
  const count = (key: (typeof KEYS)[number]) => sums[key] ?? 0
  const events = count('accepted')
  const turns = count('turns')
  const effects = count('effects')
  const turn_seconds = count('turn_time_ms') / 1000
  const platform = (end: 'low' | 'high') =>
    (events * rates.event[end] + turns * rates.turn[end] + effects * rates.effect[end] + turn_seconds * rates.turn_second) / 1e6
  const model_usd = count('model_cost_usd')
  const platform_usd = ordered(platform('low'), platform('high'))
  const total_usd = { low: model_usd + platform_usd.low, high: model_usd + platform_usd.high }
  return {
    counts: {
      events,
      turns,
      turn_seconds,
      effects,
      model_calls: count('model_calls'),
      unpriced_model_calls: count('unpriced_calls'),
      input_tokens: count('input_tokens'),
      output_tokens: count('output_tokens'),
      decided_by_reflexes: count('decided'),
      left_alone: count('left_alone'),
    },
    model_usd,
    platform_usd,
    total_usd,
    per_event_usd: events === 0 ? null : { low: total_usd.low / events, high: total_usd.high / events },
    saved_usd: count('saved_cost_usd'),
    most_missed: mostMissed(sums),
    basis: BASIS,
  }
}

/** With many effects and few events the batch rate is the higher one. */
const ordered = (one: number, other: number): Range => ({ low: Math.min(one, other), high: Math.max(one, other) })
const shown = ({ low, high }: Range): string => `${Math.min(low, high)} to ${Math.max(low, high)} $`

const BASIS =
  `Recorded cost of model calls, plus per million: ${shown(rates.event)} for events, ${shown(rates.turn)} for turns, ` +
  `${shown(rates.effect)} for effects, ${rates.turn_second} $ for seconds of turns. Measured at list prices with events of 465 bytes and the default retention; ` +
  'included amounts, CPU, rows read, open streams and the archive are left out.'
