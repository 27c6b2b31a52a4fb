import prices from './prices.json' with { type: 'json' }

/**
 * USD per million tokens, input then output, as `npm run prices` wrote them: the standard rate,
 * without discounts for cached input and batches, so that a cost errs on the high side.
 */
const PRICES = new Map(Object.entries(prices))

const LONGEST_FIRST = [...PRICES.keys()].toSorted((left, right) => right.length - left.length)

/**
 * The suffixes that leave a model the same: a date or `latest`. Others (`-pro`, `-fast`) name
 * another model with its own price, and an unknown price is better than a wrong one.
 */
const SAME_MODEL = /^(-\d{4}-\d{2}-\d{2}|-\d{4}|-\d{8}|-latest)?$/

/**
 * USD for one call, or null if the model's price is unknown; the offline model costs 0. Accepts
 * names with and without the provider's prefix.
 */
export function costOf(model: string, tokens: { input_tokens: number; output_tokens: number }): number | null {
  if (model === 'offline') return 0
  const name = withoutProvider(model)
  const listed = LONGEST_FIRST.find((prefix) => name.startsWith(prefix) && SAME_MODEL.test(name.slice(prefix.length)))
  const [input, output] = PRICES.get(listed ?? '') ?? []
  if (input === undefined || output === undefined) return null
  return (tokens.input_tokens * input + tokens.output_tokens * output) / 1_000_000
}

function withoutProvider(model: string): string {
  const workersAI = model.indexOf('@cf/')
  return workersAI >= 0 ? model.slice(workersAI) : model.slice(model.lastIndexOf('/') + 1)
}
