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

/** The bound for what calls these tools, an act or a procedure: the strictest of theirs. */
export const agreementOfTools = (of: Agreement, tools: readonly string[]): number =>
  typeof of === 'number' ? of : Math.max(...tools.map((tool) => own(of, tool) ?? agreementOfAll(of)))

/** The bound for an act, if one is set for a tool that it calls; else null. */
export function agreementOfAct(of: Agreement, act: string): number | null {
  const tools = partsOfAct(act)
  const is_set = typeof of !== 'number' && tools.some((tool) => tool !== 'default' && own(of, tool) !== undefined)
  return is_set ? agreementOfTools(of, tools) : null
}

const own = (of: Readonly<Record<string, number>>, name: string): number | undefined => (Object.hasOwn(of, name) ? of[name] : undefined)
