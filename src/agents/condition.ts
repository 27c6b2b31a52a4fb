import { messageOf } from '../protocol/message-of.ts'
import { Environment, type ASTNode } from '@marcbachmann/cel-js'
import type { DecisionContext } from '../core/decision-context.ts'
import type { Event } from '../core/event.ts'

/** A condition is short, and runs before each turn. */
const limits = { maxAstNodes: 100, maxDepth: 12, maxListElements: 20, maxMapEntries: 10, maxCallArguments: 3 }
/** The most frequent ones that a condition may count over; each step of `by_source.exists(…)` may cost as much again. */
const MOST_NAMES = 200

/**
 * What a `when` expression may speak of: counts over the whole context and over its last 10 s, 1 min and 10 min, each as
 * `{total, by_type, by_source}`; the whole context's are also named directly. What has not come counts 0.
 */
const counts = { total: 'int', by_type: 'map<string, int>', by_source: 'map<string, int>' } as const
const windows = { last_10s: 10, last_1m: 60, last_10m: 600 } as const

const environment = new Environment({ unlistedVariablesAreDyn: false, limits })
for (const [name, type] of Object.entries(counts)) environment.registerVariable(name, type)
for (const name of Object.keys(windows)) environment.registerVariable({ name, schema: counts })

/** What is wrong with a condition, or null. */
export function conditionError(expression: string): string | null {
  try {
    const parsed = environment.parse(expression)
    const refused = refusedIn(parsed.ast)
    if (refused !== null) return refused
    const checked = parsed.check()
    if (!checked.valid) return checked.error?.message ?? 'the expression does not check'
    return checked.type === 'bool' ? null : `the expression is a ${String(checked.type)}; it must be a bool`
  } catch (error) {
    return messageOf(error)
  }
}

/** Whether the condition holds. Throws where it cannot be evaluated: a condition that fails is never taken to hold. */
export function holds<E extends Event>(expression: string, context: DecisionContext<E>): boolean {
  const wrong = conditionError(expression)
  if (wrong !== null) throw new Error(`the condition "${expression}" is wrong: ${wrong}`)
  const recent = Object.entries(windows).map(([name, seconds]) => [name, countsOf(context.window(seconds))])
  try {
    return environment.evaluate(expression, { ...countsOf(context.events), ...Object.fromEntries(recent) }) === true
  } catch (error) {
    throw new Error(`the condition "${expression}" could not be evaluated: ${messageOf(error)}`, { cause: error })
  }
}

const ITERATING: readonly string[] = ['all', 'exists', 'exists_one', 'filter']
const SAFE: readonly string[] = [...ITERATING, 'size', 'startsWith', 'endsWith', 'contains', 'int', 'double', 'string']

/**
 * CEL ends always, but may take ages: iterations within iterations, `cel.bind` and `map` that double a text again and again, regular expressions that
 * backtrack. So only the functions above, and no iteration within another. `in` and `has` would mislead: every name is there, and counts 0 at least.
 */
function refusedIn(node: ASTNode, iterating = false): string | null {
  if (node.op === 'in' && node.args[1].op !== 'list') return '"in" is for lists: write by_source["name"] > 0 to ask whether a name has come'
  if (node.op !== 'call' && node.op !== 'rcall') return refusedAmong(childrenOf(node.args), iterating)
  const [name] = node.args
  if (!SAFE.includes(name)) return `the function ${name} is not available here; there are ${SAFE.join(', ')}`
  const iterates = node.op === 'rcall' && ITERATING.includes(name)
  if (iterates && iterating) return `${name} stands within another iteration: that could take too long`
  if (node.op === 'call') return refusedAmong(node.args[1], iterating)
  return refusedIn(node.args[1], iterating) ?? refusedAmong(node.args[2], iterating || iterates)
}

function refusedAmong(nodes: readonly ASTNode[], iterating: boolean): string | null {
  for (const node of nodes) {
    const refused = refusedIn(node, iterating)
    if (refused !== null) return refused
  }
  return null
}

/** The nodes among a node's arguments, which are nodes, lists of them and plain values. */
function childrenOf(args: ASTNode['args'] | ASTNode | readonly ASTNode[]): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(childrenOf)
  return isNode(args) ? [args] : []
}

const isNode = (value: unknown): value is ASTNode => typeof value === 'object' && value !== null && 'op' in value

function countsOf(events: readonly Event[]): Record<keyof typeof counts, unknown> {
  return {
    total: BigInt(events.length),
    by_type: tally(events.map(({ type }) => type)),
    by_source: tally(events.map(({ source }) => source)),
  }
}

/** CEL's integers are bigints here. A Map, for a source may be called `constructor`. */
function tally(names: readonly string[]): Map<string, bigint> {
  const count = new Map<string, bigint>()
  for (const name of names) count.set(name, (count.get(name) ?? 0n) + 1n)
  const most = new Map(
    Array.from(count)
      .sort(([, left], [, right]) => Number(right - left))
      .slice(0, MOST_NAMES),
  )
  // The library takes no subclass of Map. A condition on what has not come yet is false, not an error.
  most.get = (name) => Map.prototype.get.call(most, name) ?? 0n
  return most
}
