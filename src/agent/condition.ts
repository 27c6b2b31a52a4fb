import type { ASTNode } from '@marcbachmann/cel-js'
import { whenCounts, whenFunctions, whenWindows } from '../contract/settings/when.ts'
import type { DecisionContext } from '../core/decision-context.ts'
import type { Event } from '../core/event.ts'
import { compile, run, type CompiledExpression, type Expression, compileOnce } from '../expressions/compile.ts'
import { base, EVALUATION_WORK } from '../expressions/environment.ts'
import { nodesIn } from '../expressions/names.ts'

/** The most frequent types and sources that a condition may count over. */
const MOST_NAMES = 200

/** A type or source without events counts 0. */
const environment = base.clone({ unlistedVariablesAreDyn: false })
for (const [name, type] of Object.entries(whenCounts)) environment.registerVariable(name, type)
for (const name of Object.keys(whenWindows)) environment.registerVariable({ name, schema: whenCounts })

/** Returns the mistake in a condition, or null. */
export function conditionError(expression: string): string | null {
  const compiled = compileCondition(expression)
  return compiled.ok ? null : compiled.detail
}

/** True if the condition holds. Throws if it cannot be evaluated. */
export function holds<E extends Event>(expression: string, context: DecisionContext<E>): boolean {
  const compiled = compileCondition(expression)
  if (!compiled.ok) throw new Error(`the condition "${expression}" is wrong: ${compiled.detail}`)
  const variables = variablesOf(compiled.expression.paths, context)
  const ran = run(compiled.expression, { variables, work: { left: EVALUATION_WORK }, host: null })
  if (!ran.ok) throw new Error(`the condition "${expression}" could not be evaluated: ${ran.detail}`)
  return ran.value === true
}

/** Each scope has one condition and evaluates it before each turn. */
const MOST_COMPILED = 200
const compileCondition = compileOnce(MOST_COMPILED, compileAnew)

function compileAnew(expression: string): CompiledExpression {
  const compiled = compile(expression, environment)
  if (!compiled.ok) return compiled
  const refused = nodesIn(compiled.expression.run.ast)
    .map(refusal)
    .find((detail) => detail !== null)
  return refused === undefined ? compiled : { ok: false, reason: 'invalid', detail: refused }
}

const ALLOWED: readonly string[] = whenFunctions

/** `in` and `has` would mislead: every name exists and counts at least 0. */
function refusal(node: ASTNode): string | null {
  if (node.op === 'in' && node.args[1].op !== 'list') return '"in" is for lists: write by_source["name"] > 0 to ask whether a name has come'
  if (node.op !== 'call' && node.op !== 'rcall') return null
  const [name] = node.args
  return ALLOWED.includes(name) ? null : `the function ${name} is not available here; there are ${ALLOWED.join(', ')}`
}

/** Computes only the counts and windows that the condition reads: each walks the whole context. */
function variablesOf<E extends Event>(paths: Expression['paths'], context: DecisionContext<E>): Map<string, unknown> {
  const names = new Set(paths.map(([name]) => name))
  const whole = Object.keys(whenCounts).some((name) => names.has(name)) ? Object.entries(countsOf(context.events)) : []
  const recent = Object.entries(whenWindows).filter(([name]) => names.has(name))
  return new Map([...whole, ...recent.map(([name, seconds]) => [name, countsOf(context.window(seconds))] as const)])
}

function countsOf(events: readonly Event[]): Record<keyof typeof whenCounts, unknown> {
  return {
    total: BigInt(events.length),
    by_type: tally(events.map(({ type }) => type)),
    by_source: tally(events.map(({ source }) => source)),
  }
}

/** CEL integers are bigints. A Map is used because a source may be called `constructor`. */
function tally(names: readonly string[]): Map<string, bigint> {
  const count = new Map<string, bigint>()
  for (const name of names) count.set(name, (count.get(name) ?? 0n) + 1n)
  const most = new Map(
    Array.from(count)
      .sort(([, left], [, right]) => Number(right - left))
      .slice(0, MOST_NAMES),
  )
  // The library accepts no subclass of Map. A condition on an event that never arrived is false.
  most.get = (name) => Map.prototype.get.call(most, name) ?? 0n
  return most
}
