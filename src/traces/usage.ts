import type { Usage } from '../contract/log-entry.ts'

/** The sum of what two calls or turns took. A price that is unknown makes the sum unknown. */
export const addedUsage = (one: Usage, other: Usage): Usage => ({
  input_tokens: one.input_tokens + other.input_tokens,
  output_tokens: one.output_tokens + other.output_tokens,
  cost_usd: addedCost(one.cost_usd, other.cost_usd),
  model_calls: one.model_calls + other.model_calls,
})

export const addedCost = (one: number | null, other: number | null): number | null => (one === null || other === null ? null : one + other)
