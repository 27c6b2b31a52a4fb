import { Environment } from '@marcbachmann/cel-js'
import type { DecisionContext } from '../core/decision-context.ts'
import type { Event } from '../core/event.ts'

/**
 * What a `when` expression may speak of: counts over the whole context and over its last 10 s, 1 min and 10 min, each as
 * `{total, by_type, by_source}`; the whole context's are also named directly.
 */
export type Counts = { total: number; by_type: Record<string, number>; by_source: Record<string, number> }
const windows = { last_10s: 10, last_1m: 60, last_10m: 600 } as const

const environment = new Environment({ unlistedVariablesAreDyn: false })
  .registerVariable('total', 'int')
  .registerVariable('by_type', 'map<string, int>')
  .registerVariable('by_source', 'map<string, int>')
  .registerVariable('last_10s', 'map')
  .registerVariable('last_1m', 'map')
  .registerVariable('last_10m', 'map')

/** What is wrong with a condition, or null. */
export function conditionError(expression: string): string | null {
  try {
    const checked = environment.parse(expression).check()
    if (!checked.valid) return checked.error?.message ?? 'the expression does not check'
    if (checked.type !== 'bool' && checked.type !== 'dyn') return `the expression is a ${String(checked.type)}; it must be a bool`
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whether the condition holds. Throws where it cannot be evaluated: a condition that fails is never taken to hold. */
export function holds<E extends Event>(expression: string, context: DecisionContext<E>, types: readonly string[]): boolean {
  const whole = countsOf(context.events, types)
  const recent = Object.entries(windows).map(([name, seconds]) => [name, toCel(countsOf(context.window(seconds), types))])
  const verdict: unknown = environment.evaluate(expression, { ...toCel(whole), ...Object.fromEntries(recent) })
  if (typeof verdict !== 'boolean') throw new TypeError(`the condition "${expression}" is ${typeof verdict}, not true or false`)
  return verdict
}

/** Known types count from zero, so that a condition on a type that has not come yet is false rather than an error. */
function countsOf(events: readonly Event[], types: readonly string[]): Counts {
  const by_type: Record<string, number> = Object.fromEntries(types.map((type) => [type, 0]))
  const by_source: Record<string, number> = {}
  for (const { type, source } of events) {
    by_type[type] = (by_type[type] ?? 0) + 1
    by_source[source] = (by_source[source] ?? 0) + 1
  }
  return { total: events.length, by_type, by_source }
}

/** CEL's integers are bigints here. */
function toCel({ total, by_type, by_source }: Counts): Record<string, unknown> {
  const big = (counts: Record<string, number>) => Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, BigInt(count)]))
  return { total: BigInt(total), by_type: big(by_type), by_source: big(by_source) }
}
