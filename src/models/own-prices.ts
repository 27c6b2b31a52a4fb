import { z } from 'zod'
import { jsonValue } from '../base/json.ts'

const price = z.number().min(0).max(1_000_000)
const ownPrices = z.record(z.string().min(1).max(200), z.strictObject({ input: price, output: price }))

/** USD per million input and output tokens, by the name of the model. */
export type OwnPrices = z.infer<typeof ownPrices>
type PriceEnv = { REFLEX_MODEL_PRICES?: string }

const HOW = 'write it as {"MODEL": {"input": 0.5, "output": 1.5}}: dollars per million tokens'
const NONE: OwnPrices = {}
let known: { text: string; prices: OwnPrices } | undefined

/** The deployment's prices. A value that cannot be read has none: readiness says what is wrong. */
export function ownPricesOf({ REFLEX_MODEL_PRICES: text }: PriceEnv): OwnPrices {
  if (text === undefined || text.trim() === '') return NONE
  if (known?.text !== text) known = { text, prices: ownPrices.safeParse(jsonValue(text)).data ?? NONE }
  return known.prices
}

/** Describes what is wrong with the variable, or null. */
export function ownPricesProblem({ REFLEX_MODEL_PRICES: text }: PriceEnv): string | null {
  if (text === undefined || text.trim() === '') return null
  const value = jsonValue(text)
  if (value === undefined) return `REFLEX_MODEL_PRICES is not valid JSON: ${HOW}.`
  const parsed = ownPrices.safeParse(value)
  if (parsed.success) return null
  const [issue] = parsed.error.issues
  return `REFLEX_MODEL_PRICES${issue?.path.map((key) => `["${String(key)}"]`).join('') ?? ''}: ${issue?.message}; ${HOW}.`
}
