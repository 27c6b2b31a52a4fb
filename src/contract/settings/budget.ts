import { z } from 'zod'
import { jsonValue } from '../../base/json.ts'
import { matchesScope } from '../principal.ts'
import { setting } from '../setting.ts'

const usd = z.number().min(0).max(1_000_000)

const budget = z.strictObject({
  usd_per_event: usd.optional().meta({ description: 'Dollars for the model calls of one event, further attempts included.' }),
  usd_per_day: usd.optional().meta({ description: 'Dollars for model calls within a day, in UTC.' }),
  usd_per_month: usd.optional().meta({ description: 'Dollars for model calls within a month, in UTC.' }),
  rows_per_day: z
    .int()
    .min(0)
    .optional()
    .meta({ description: "Rows that the scope's storage writes within a day. Then it takes no events until the next day." }),
  over: z
    .enum(['wait', 'refuse'])
    .optional()
    .meta({ description: 'What happens to an event whose call would pass a limit. `wait`, the default: until the limit is renewed.' }),
})
export type MoneyBudget = z.infer<typeof budget>

/** False of one that limits rows alone. */
export const limitsMoney = (limits: MoneyBudget | undefined): limits is MoneyBudget =>
  limits !== undefined && [limits.usd_per_event, limits.usd_per_day, limits.usd_per_month].some((most) => most !== undefined)

export const budgetSetting = setting(
  budget,
  'What model calls may cost, and how much the scope may write. A call is reserved before it, by the price of its model and the longest answer, ' +
    'and settled after it. An alert is raised at 80 %. Unset: no limit, except by `REFLEX_BUDGETS`. See docs/cost.md.',
  { usd_per_day: 5, usd_per_event: 0.05, over: 'wait' },
)

/** `each`: not one budget for all that match, but one for each scope, key or sender. */
const shared = z.record(
  z.string().regex(/^(?:scope|key|sender):\S{1,256}$/, 'must be `scope:PATTERN`, `key:ID` or `sender:PATTERN`'),
  budget.extend({ each: z.boolean().optional() }),
)
type BudgetEnv = { REFLEX_BUDGETS?: string }
type Declared = z.infer<typeof shared>

const NONE: Declared = {}
let known: { text: string; budgets: Declared; problem: string | null } | undefined

function declaredIn({ REFLEX_BUDGETS: text }: BudgetEnv): { budgets: Declared; problem: string | null } {
  if (text === undefined || text.trim() === '') return { budgets: NONE, problem: null }
  if (known?.text === text) return known
  const value = jsonValue(text)
  const parsed = shared.safeParse(value)
  const [issue] = parsed.error?.issues ?? []
  const place = issue?.path.map((key) => `["${String(key)}"]`).join('') ?? ''
  const problem = value === undefined ? 'REFLEX_BUDGETS is not valid JSON' : `REFLEX_BUDGETS${place}: ${issue?.message}`
  known = { text, budgets: parsed.data ?? NONE, problem: parsed.success ? null : problem }
  return known
}

/** Describes what is wrong with the variable, or null. */
export const budgetsProblem = (env: BudgetEnv): string | null => declaredIn(env).problem

/** The budgets of the deployment that limit money, by their keys in the variable. */
export const budgetNames = (env: BudgetEnv): string[] =>
  Object.entries(declaredIn(env).budgets).flatMap(([name, limits]) => (limitsMoney(limits) ? [name] : []))

/** `name`: of the object that counts. */
export type SharedBudget = MoneyBudget & { name: string }

/** The budgets of the deployment that a scope and the senders of its events share with others. */
export function sharedBudgets(env: BudgetEnv, scope: string, senders: readonly string[]): SharedBudget[] {
  return Object.entries(declaredIn(env).budgets).flatMap(([of, { each, ...budget }]) => {
    const pattern = of.startsWith('key:') ? of : of.slice(of.indexOf(':') + 1)
    const found = (of.startsWith('scope:') ? [scope] : senders).filter((one) => matchesScope(pattern, one))
    return each ? found.map((one) => ({ ...budget, name: `${of}#${one}` })) : found.slice(0, 1).map(() => ({ ...budget, name: of }))
  })
}
