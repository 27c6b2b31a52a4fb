import { z } from '@hono/zod-openapi'
import { scopeCost, type ScopeCost } from '../contract/cost.ts'
import { buckets } from '../contract/statistics.ts'
import { sumStatistics } from '../store/query.ts'
import { storeOf } from '../../../store/store.ts'
import { guard, instant, json, problems, resource, routes, scopePath } from '../../../http/describe/describe.ts'
import { rangeOf } from './statistics.ts'
import type { MetricSums } from './statistics-metrics.ts'

const route = routes('Scopes')

const read = route('get /v1/scopes/{scope}/cost', 'estimateScopeCost', 'Estimate the cost of a scope', {
  description:
    'Computed from what the scope counted: the recorded cost of its model calls, and an estimate of what the platform bills for its events, turns and effects. ' +
    'It lags like the statistics: an hour by day, 10 minutes by hour. docs/cost.md has the rates.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      bucket: z.enum(buckets).default('day').describe('The buckets that are summed. `all`: since the scope exists.'),
      since: instant.optional().describe('Default: an hour (minute), a day (hour) or 30 days (day) before `until`.'),
      until: instant.optional().describe('Exclusive; default: now.'),
    }),
  },
  responses: { 200: json(scopeCost, 'The estimate.'), ...problems(400) },
})

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
] as const

export const costRoutes = resource().openapi(read, async (c) => {
  const { scope } = c.var
  const { bucket, ...times } = c.req.valid('query')
  const { since, until } = rangeOf(bucket, times)
  const range = { family: 'scope' as const, bucket, since, until, patterns: [scope], keys: KEYS, by: null }
  const found = await sumStatistics(storeOf(c.env), range)
  const sums: Record<string, number> = {}
  for (const { key, value } of found) sums[key] = (sums[key] ?? 0) + value
  const iso = (at: number) => new Date(at).toISOString()
  return c.json({ scope, bucket, since: iso(since), until: iso(until), ...costOf(sums) } satisfies ScopeCost, 200)
})

/**
 * Dollars per million, as measured in docs/cost.md: `low` in batches, `high` alone. A turn and an
 * effect are the difference that they make to an event.
 */
export const rates = {
  event: { low: 8, high: 16.8 },
  turn: { low: 2, high: 4.2 },
  effect: { low: 15.8, high: 14 },
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
    },
    model_usd,
    platform_usd,
    total_usd,
    per_event_usd: events === 0 ? null : { low: total_usd.low / events, high: total_usd.high / events },
    saved_usd: count('saved_cost_usd'),
    basis: BASIS,
  }
}

/** With many effects and few events the batch rate is the higher one. */
const ordered = (one: number, other: number) => ({ low: Math.min(one, other), high: Math.max(one, other) })

const BASIS =
  `Recorded cost of model calls, plus per million: ${rates.event.low} to ${rates.event.high} $ for events, ${rates.turn.low} to ${rates.turn.high} $ for turns, ` +
  `${rates.effect.high} to ${rates.effect.low} $ for effects, ${rates.turn_second} $ for seconds of turns. Measured at list prices with events of 465 bytes and the default retention; ` +
  'included amounts, CPU, rows read, open streams and the archive are left out.'
