import { z } from 'zod'
import { partsOfAct } from './act-name.ts'

const LEAST = 0.9
const MOST = 0.999
export const DEFAULT_AGREEMENT = 0.99
const MOST_NAMES = 100

const bound = z.number().min(LEAST).max(MOST)
const allowed = `must be a number from ${LEAST} to ${MOST}, or such numbers by tool, such as {"default": ${DEFAULT_AGREEMENT}, "refund": ${MOST}}`

/** The share of decisions that must agree: one for all, or by tool beside a `default`. */
export const agreement = z.union(
  [
    bound,
    z
      .record(z.string().min(1).max(128), bound)
      .refine((by_tool) => Object.keys(by_tool).length <= MOST_NAMES, `has bounds for more than ${MOST_NAMES} tools`),
  ],
  { error: allowed },
)
export type Agreement = z.infer<typeof agreement>

/** An earlier version allowed lower bounds, which a scope may still have. */
export const atLeastAllowed = (stored: unknown): unknown => (typeof stored === 'number' ? Math.max(stored, LEAST) : stored)

/** The bound for all acts together that have none of their own. */
export const agreementOfAll = (of: Agreement): number => (typeof of === 'number' ? of : (own(of, 'default') ?? DEFAULT_AGREEMENT))

/** The strictest bound that is set for an act by its name; null if none is. */
export function agreementOfAct(of: Agreement, act: string): number | null {
  if (typeof of === 'number') return null
  const named = partsOfAct(act).flatMap((name) => (name === 'default' ? [] : (own(of, name) ?? [])))
  return named.length === 0 ? null : Math.max(...named)
}

/** The bound for an act, by itself or with the others. */
export const agreementFor = (of: Agreement, act: string): number => agreementOfAct(of, act) ?? agreementOfAll(of)

/** The bound for a procedure that calls these tools: the strictest of theirs. */
export const agreementOfTools = (of: Agreement, tools: readonly string[]): number =>
  tools.length === 0 ? agreementOfAll(of) : Math.max(...tools.map((tool) => agreementFor(of, tool)))

const own = (of: Readonly<Record<string, number>>, name: string): number | undefined => (Object.hasOwn(of, name) ? of[name] : undefined)
