import type { Refused } from '../base/result.ts'
import type { Environment, ParseResult, ASTNode } from '@marcbachmann/cel-js'
import { messageOf } from '../base/error-text.ts'
import {
  environmentWith,
  withHost,
  type ExpressionHost,
  DECISION_WORK,
  EVALUATION_WORK,
  isSpent,
  onAccount,
  type Work,
  spend,
  WorkSpent,
} from './environment.ts'
import { namesOf, type NamesOf } from './names.ts'
import { isFound, patternOf } from './pattern.ts'
import { chargeHost, ERROR, FUNCTIONS, iteration, METHODS, NODE, OPERATORS, type Charge } from './charges.ts'

export type Expression = { source: string; paths: NamesOf['paths']; functions: ReadonlySet<string>; run: ParseResult }
/** `detail` ends with an excerpt of the source if the library provides one. */
export type CompiledExpression = { ok: true; expression: Expression } | Refused<'invalid'>
type Ran = { ok: true; value: unknown } | Refused<'failed' | 'over_budget'>

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

const TABLE = 256
const PREPARED = 500
const STEP = 4
const CANDIDATE = 50
/** Steps that are charged at once. */
const STRIDE = 4096

/** Horspool's search with counted steps: `String.includes` is quadratic for some texts. */
export function contains(text: string, part: string): boolean {
  const { length } = part
  if (length <= 1) {
    spend(text.length)
    return text.includes(part)
  }
  spend(PREPARED + 2 * length)
  const shifts = shiftsOf(part)
  const last = part.charCodeAt(length - 1)
  let steps = 0
  for (let at = 0; at <= text.length - length;) {
    if (steps++ % STRIDE === 0) spend(STEP * Math.min(STRIDE, text.length - at))
    const code = text.charCodeAt(at + length - 1)
    if (code === last) {
      spend(CANDIDATE + length)
      if (text.startsWith(part, at)) return true
    }
    at += shifts[code % TABLE] ?? 1
  }
  return false
}

/** The distance to a character's next occurrence in the part. Slots keep the shortest one. */
function shiftsOf(part: string): Uint32Array {
  const shifts = new Uint32Array(TABLE).fill(part.length)
  for (let index = 0; index < part.length - 1; index++) shifts[part.charCodeAt(index) % TABLE] = part.length - 1 - index
  return shifts
}

/** Functions in the library's checked nodes: `handle` gets values, `evaluate` gets nodes. */
type Handle = (this: void, ...parts: unknown[]) => unknown
type Evaluate = (this: void, ...parts: unknown[]) => unknown
type Checked = {
  op: string
  args: unknown
  handle?: Handle
  meta: { evaluate?: Evaluate; alternate?: Checked; macro?: { evaluate: Evaluate } }
  setMeta: (key: 'evaluate', value: Evaluate) => unknown
}

/** Operators whose work does not depend on the size of their operands. */
const CONSTANT = new Set([
  '.',
  '!_',
  '-_',
  '-',
  '*',
  '/',
  '%',
  '?:',
  '||',
  '&&',
  'value',
  'id',
  'list',
  'map',
  'accuValue',
  'accuInc',
  'accuPush',
])

/**
 * Charges each node before it works, by wrapping the functions in the checked nodes: the library
 * has no hook. Unknown kinds of nodes are refused.
 */
function meter(checked: ASTNode): void {
  wrap(checked as unknown as Checked, new Set())
}

function wrap(node: Checked, seen: Set<Checked>): void {
  if (seen.has(node)) return
  seen.add(node)
  const { alternate, macro, evaluate } = node.meta
  if (alternate) return wrap(alternate, seen)
  if (macro) {
    macro.evaluate = paid(macro.evaluate)
    return
  }
  if (typeof evaluate !== 'function') throw new Error(`the expression's ${node.op} cannot be metered`)
  node.setMeta('evaluate', paid(evaluate))
  if (!CONSTANT.has(node.op)) node.handle = charged(node)
  for (const child of childrenOf(node.args)) wrap(child, seen)
}

/** The error that was already charged: it passes through each enclosing node. */
let thrown: unknown = null

const paid =
  (evaluate: Evaluate): Evaluate =>
  (...parts) => {
    spend(NODE)
    try {
      return evaluate(...parts)
    } catch (error) {
      if (error !== thrown && !(error instanceof WorkSpent)) spend(ERROR)
      thrown = error
      throw error
    }
  }

function charged(node: Checked): Handle {
  const { op, handle } = node
  if (typeof handle !== 'function') throw new Error(`the expression's ${op} cannot be metered`)
  if (op === 'comprehension') return after((iterable) => iteration(iterable), handle)
  if (op === 'call') return call((node.args as [string])[0], handle)
  if (op === 'rcall') return method(node, handle)
  const charge = OPERATORS[op]
  if (!charge) throw new Error(`the expression's ${op} cannot be metered`)
  return after((left, right) => charge([left, right]), handle)
}

const after =
  (pay: (...parts: unknown[]) => void, handle: Handle): Handle =>
  (...parts) => {
    pay(...parts)
    return handle(...parts)
  }

const forOperands = (charge: Charge, handle: Handle): Handle => after((operands) => charge(operands as unknown[]), handle)

function call(name: string, handle: Handle): Handle {
  const charge = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined
  if (charge) return forOperands(charge, handle)
  return (operands, ...rest) => {
    chargeHost(operands)
    const result = handle(operands, ...rest)
    chargeHost(result)
    return result
  }
}

function method({ args }: Checked, handle: Handle): Handle {
  const [name, , [first]] = args as [string, unknown, Checked[]]
  if (name === 'contains') return containing(handle)
  if (name === 'matches') return matching(String(first?.args), handle)
  const charge = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined
  if (!charge) throw new Error(`the expression's ${name} cannot be metered`)
  return forOperands(charge, handle)
}

/** If the operands are not two texts, the library refuses them with its own message. */
const containing =
  (handle: Handle): Handle =>
  (operands, ...rest) => {
    const [text, part] = operands as unknown[]
    return typeof text === 'string' && typeof part === 'string' ? contains(text, part) : handle(operands, ...rest)
  }

/** The library would use JavaScript's patterns, which can take exponential time. */
function matching(source: string, handle: Handle): Handle {
  const found = patternOf(source)
  if (!found.ok) throw new Error(found.detail)
  return (operands, ...rest) => {
    const [text] = operands as unknown[]
    return typeof text === 'string' ? isFound(found.pattern, text) : handle(operands, ...rest)
  }
}

/** The nodes among arguments: nodes, lists or records of nodes, or plain values. */
function childrenOf(args: unknown): Checked[] {
  if (isNode(args)) return [args]
  if (Array.isArray(args)) return args.flatMap(childrenOf)
  if (typeof args !== 'object' || args === null || Object.getPrototypeOf(args) !== Object.prototype) return []
  return Object.values(args).flatMap(childrenOf)
}

const isNode = (value: unknown): value is Checked => typeof value === 'object' && value !== null && 'op' in value && 'setMeta' in value
