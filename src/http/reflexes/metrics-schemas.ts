import { z } from '@hono/zod-openapi'

const count = z.int()
export const percentiles = z.object({ p50: count, p90: count, p99: count, max: z.number() })

export const presentedMetrics = {
  runs: count.meta({ description: 'Those in shadow too.' }),
  fired: count,
  passed: z
    .object({ null: count, error: count, limit: count, invalid_action: count })
    .meta({ description: 'Runs that did not fire, by why.' }),
  held_back: count.meta({ description: 'Fires that a cooldown or a rate held back.' }),
  acted: count,
  failed: count.meta({ description: 'Actions whose effect failed.' }),
  shadow: z.object({ runs: count, fired: count, agreed: count, disagreed: count, undecided: count }),
  agreement: z.number().nullable().meta({ description: 'The share of the compared fires in shadow that did what was decided.' }),
  overruled: count,
  model_calls_saved: z.number(),
  tokens_saved: z.number(),
  cost_saved_usd: z.number(),
  fuel: percentiles,
  duration_us: percentiles,
}

export const totals = z.object(presentedMetrics).openapi('ReflexMetrics')
