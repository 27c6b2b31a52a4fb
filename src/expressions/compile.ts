import type { Refused } from '../base/result.ts'
import type { Environment, ParseResult } from '@marcbachmann/cel-js'
import { messageOf } from '../base/error-text.ts'
import { environmentWith, withHost, type ExpressionHost } from './environment.ts'
import { meter } from './metered.ts'
import { namesOf, type NamesOf } from './names.ts'
import { DECISION_WORK, EVALUATION_WORK, isSpent, onAccount, type Work } from './work.ts'

export type Expression = { source: string; paths: NamesOf['paths']; functions: ReadonlySet<string>; run: ParseResult }
/** `detail` ends with an excerpt of the source if the library provides one. */
export type CompiledExpression = { ok: true; expression: Expression } | Refused<'invalid'>
export type Ran = { ok: true; value: unknown } | Refused<'failed' | 'over_budget'>

const LONGEST_SOURCE = 2000
/** Each is registered once per number of arguments. */
const MOST_FUNCTIONS = 16

/** Compiles a bounded and metered expression. `environment` adds variables. */
export function compile(source: string, environment?: Environment, yields: 'bool' | 'any' = 'bool'): CompiledExpression {
  if (source.length > LONGEST_SOURCE) return invalid(`the expression has ${source.length} characters; ${LONGEST_SOURCE} are allowed`)
  try {
    const parsing = environment ?? environmentWith(new Set())
    const parsed = parsing.parse(source)
    const { paths, functions, refused } = namesOf(parsed.ast)
    if (refused !== null) return invalid(refused)
    if (functions.size > MOST_FUNCTIONS) return invalid(`the expression calls ${functions.size} functions; ${MOST_FUNCTIONS} are allowed`)
    const run = environment || functions.size === 0 ? parsed : environmentWith(functions).parse(source)
    const checked = run.check()
    if (!checked.valid) return invalid(messageOf(checked.error))
    if (yields === 'bool' && checked.type !== 'bool' && checked.type !== 'dyn')
      return invalid(`must be true or false; its type is ${checked.type ?? 'unknown'}`)
    meter(run.ast)
    return { ok: true, expression: { source, paths, functions, run } }
  } catch (error) {
    return invalid(messageOf(error))
  }
}

/** Runs an expression and charges its work to `work`. Never throws. */
export function run(
  { run }: Expression,
  { variables, work, host }: { variables: Map<string, unknown>; work: Work; host: ExpressionHost | null },
): Ran {
  const granted = Math.min(EVALUATION_WORK, Math.max(0, work.left))
  const own: Work = { left: granted }
  try {
    const value: unknown = onAccount(own, () => withHost(host, () => run(variables)))
    return isSpent(own) ? overBudget(granted) : { ok: true, value }
  } catch (error) {
    return isSpent(own) ? overBudget(granted) : { ok: false, reason: 'failed', detail: messageOf(error) }
  } finally {
    work.left -= granted - own.left
  }
}

/** `granted`: the decision's remaining work, if it is less than the limit of one evaluation. */
export const overBudget = (granted: number): Extract<Ran, { ok: false }> => ({
  ok: false,
  reason: 'over_budget',
  detail:
    granted < EVALUATION_WORK
      ? `the expressions of one decision may do ${DECISION_WORK} units of work together, of which ${granted} were left for this one: let them look at less text and shorter lists`
      : `the expression takes more than the ${EVALUATION_WORK} units of work that are allowed: let it look at less text and shorter lists`,
})

const invalid = (detail: string): Refused<'invalid'> => ({ ok: false, reason: 'invalid', detail })

/** Compiles a source once; the most recently compiled `most` are kept. */
export function compileOnce(most: number, compile: (source: string) => CompiledExpression): (source: string) => CompiledExpression {
  const known = new Map<string, CompiledExpression>()
  return (source) => {
    const before = known.get(source)
    if (before) return before
    const fresh = compile(source)
    if (known.size >= most) known.delete(known.keys().next().value ?? '')
    known.set(source, fresh)
    return fresh
  }
}
