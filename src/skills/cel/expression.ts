import type { Refused } from '../../base/result.ts'
import { messageOf } from '../../base/error-text.ts'
import { isJsonFields, canonicalJson, type Json } from '../../base/json.ts'
import { CONVERTED } from '../../expressions/charges.ts'
import { compile, overBudget, run, compileOnce } from '../../expressions/compile.ts'
import { converter, TooLarge, fromCel, toCel, isSpent, type Work, DECISION_WORK } from '../../expressions/environment.ts'
import { ROOTS } from '../manifest/names.ts'

export type Path = readonly string[]

/** Splits `work.items.0.name` into its parts; null if it is not a path. */
export function parsePath(text: string): string[] | null {
  return /^[\w-]+(?:\.[\w-]+){0,15}$/.test(text) ? text.split('.') : null
}

const pathText = (path: Path): string => path.join('.')

/** The value at `path`, by own properties only. `at` is the first part that does not exist. */
export function readPath(root: unknown, path: Path): { found: true; value: unknown } | { found: false; at: string } {
  let value = root
  for (const [index, name] of path.entries()) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name) || isLength(value, name)) {
      return { found: false, at: pathText(path.slice(0, index + 1)) }
    }
    value = (value as Record<string, unknown>)[name]
  }
  return value === undefined ? { found: false, at: pathText(path) } : { found: true, value }
}

/** A copy of `root` with `value` at `path`. Other values on the path are replaced by objects. */
export function withPath(root: unknown, path: Path, value: unknown): unknown {
  const [name, ...rest] = path
  if (name === undefined) return value
  const fields = typeof root === 'object' && root !== null && !Array.isArray(root) ? (root as Record<string, unknown>) : {}
  const inner = Object.hasOwn(fields, name) ? fields[name] : undefined
  // fromEntries defines each field, where an assignment to `__proto__` would set the prototype.
  return Object.fromEntries([...Object.entries(fields).filter(([other]) => other !== name), [name, withPath(inner, rest, value)]])
}

/** True for the own property of lists that JSON does not have. */
const isLength = (value: object, name: string): boolean => Array.isArray(value) && name === 'length'

/** A synchronous function of the host that expressions may call, JSON in and out. It may throw. */
type Probe = (...args: Json[]) => unknown
export type Probes = Readonly<Record<string, Probe>>

/** A call as it was made, for the log; a replay is answered from it. */
export type ProbeCall = { probe: string; args: Json[] } & ProbeAnswer
type ProbeAnswer = { result: Json } | { error: string }

type ProbeOptions = {
  probes?: Probes | undefined
  /** A replay's: these calls are answered in their order and no probe is called. */
  recorded?: readonly ProbeCall[] | undefined
  /** Masks what is recorded. The expression gets the masked result too, as a replay will. */
  hide?: ((value: Json) => Json) | undefined
}

/**
 * The probes of one decision and the work that its expressions share. `calls` records the calls.
 */
export type ProbeSession = { readonly calls: ProbeCall[]; readonly work: Work; call(name: string, args: readonly unknown[]): unknown }

const MOST_CALLS = 500

export function probeSession({ probes = {}, recorded, hide = (value) => value }: ProbeOptions = {}): ProbeSession {
  const calls: ProbeCall[] = []
  const left = recorded === undefined ? null : [...recorded]
  const record = (call: ProbeCall): ProbeCall => {
    calls.push(call)
    return call
  }
  return {
    calls,
    work: { left: DECISION_WORK },
    call(name, celArgs) {
      if (calls.length >= MOST_CALLS) throw new Error(`one decision calls at most ${MOST_CALLS} probes`)
      const args = celArgs.map(fromCel)
      const shown = args.map(hide)
      const call = left
        ? record(take(left, name, shown))
        : record({ probe: name, args: shown, ...hidden(answer(probes, name, args), hide) })
      if ('error' in call) throw new Error(`the probe ${name} failed: ${call.error}`)
      return toCel(call.result)
    },
  }
}

function answer(probes: Probes, name: string, args: readonly Json[]): ProbeAnswer {
  const probe = Object.hasOwn(probes, name) ? probes[name] : undefined
  if (!probe) return { error: `there is no probe called ${name}` }
  try {
    return { result: fromCel(toCel(probe(...structuredClone(args)))) }
  } catch (error) {
    return { error: messageOf(error) }
  }
}

const hidden = (answered: ProbeAnswer, hide: (value: Json) => Json): ProbeAnswer =>
  'error' in answered ? { error: textOf(hide(answered.error)) } : { result: hide(answered.result) }

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

function take(left: ProbeCall[], name: string, args: readonly Json[]): ProbeCall {
  const wanted = canonicalJson(args)
  const index = left.findIndex((call) => call.probe === name && canonicalJson(call.args) === wanted)
  const [call] = index < 0 ? [] : left.splice(index, 1)
  return call ?? { probe: name, args: [...args], error: 'this call was not recorded' }
}

/**
 * CEL for invariants, guards and policies.
 *
 * 1. An expression that cannot be evaluated, or is no bool, is never a pass: it comes back as `ok:
 *    false`.
 * 2. Bounded: its length, nodes, depth and functions before it is run, what it reads when that is
 *    converted, and its work while it runs.
 * 3. The same scope and the same recorded probe calls give the same result.
 */

/** The variables of an expression. Any other name is an input, or else a name in `env`. */
export type ExpressionScope = {
  ctx?: unknown
  env?: unknown
  work?: unknown
  policy?: unknown
  inputs?: unknown
  /** The proposed inputs, or the arguments of the step's tool. */
  args?: unknown
}

export type CelResult = { ok: true; value: boolean } | Refused<'invalid' | 'failed' | 'not_bool' | 'too_large' | 'over_budget'>

const MOST_COMPILED = 2000

/** Parses and bounds an expression, once: the most recent ones are kept. */
export const compileExpression = compileOnce(MOST_COMPILED, (source) => inOneLine(compile(source)))

/** Evaluates to true or false, or says why not. Never throws. */
export function evaluate(source: string, scope: ExpressionScope, probes: ProbeSession = probeSession()): CelResult {
  const known = compileExpression(source)
  if (!known.ok) return known
  if (isSpent(probes.work)) return overBudget(0)
  const read = readVariables(known.expression.paths, scope, probes.work)
  if (!read.ok) return read
  const ran = run(known.expression, { variables: read.variables, work: probes.work, host: probes })
  if (!ran.ok) return inOneLine(ran)
  if (typeof ran.value === 'boolean') return { ok: true, value: ran.value }
  return { ok: false, reason: 'not_bool', detail: `the expression gives a ${typeof ran.value}, not true or false` }
}

/** Drops the library's picture of the source: the text goes into sentences and prompts. */
const inOneLine = <Result extends { ok: true } | { ok: false; detail: string }>(result: Result): Result =>
  result.ok ? result : { ...result, detail: result.detail.split('\n', 1)[0] ?? '' }

type Read = { ok: true; variables: Map<string, unknown> } | Refused<'too_large' | 'failed'>

function readVariables(paths: readonly Path[], scope: ExpressionScope, work: Work): Read {
  const { convert, values } = converter()
  try {
    return { ok: true, variables: variablesOf(paths, scope, convert) }
  } catch (error) {
    if (error instanceof TooLarge) return { ok: false, reason: 'too_large', detail: `what the expression reads ${error.message}` }
    return { ok: false, reason: 'failed', detail: messageOf(error) }
  } finally {
    work.left -= CONVERTED * values()
  }
}

/** The paths that an expression reads, with their values. A missing value is undefined. */
export function valuesRead(source: string, scope: ExpressionScope): { path: string; value: unknown }[] {
  const known = compileExpression(source)
  if (!known.ok) return []
  const paths = new Map(known.expression.paths.map((path) => [path.join('.'), path]))
  return Array.from(paths, ([text, path]) => {
    const found = readPath(rootOf(path[0] ?? '', scope), path.slice(1))
    return { path: text, value: found.found ? found.value : undefined }
  })
}

/** Converts only the paths that are read: the size of the blackboard does not matter. */
function variablesOf(paths: readonly Path[], scope: ExpressionScope, convert: (value: unknown) => unknown): Map<string, unknown> {
  const found = paths.flatMap(([root = '', ...rest]) =>
    deepest(rootOf(root, scope), rest).map((there) => ({ ...there, path: [root, ...there.path] })),
  )
  // Partial values come first, and longer paths before the shorter ones that contain them.
  const ordered = found.toSorted((left, right) => Number(left.whole) - Number(right.whole) || right.path.length - left.path.length)
  let known: unknown = {}
  for (const { path, value } of ordered) known = withPath(known, path, value)
  return new Map(Object.entries(known as object).map(([name, value]) => [name, convert(value)]))
}

type There = { path: Path; value: unknown; whole: boolean }

/** The value at the path, or else the last object on the way to it, without its other fields. */
function deepest(root: unknown, path: Path): There[] {
  for (let length = root === undefined ? -1 : path.length; length >= 0; length--) {
    const found = readPath(root, path.slice(0, length))
    if (!found.found) continue
    const whole = length === path.length
    return [{ path: path.slice(0, length), value: whole || !isJsonFields(found.value) ? found.value : {}, whole }]
  }
  return []
}

function rootOf(name: string, scope: ExpressionScope): unknown {
  if ((ROOTS as readonly string[]).includes(name)) return scope[name as keyof ExpressionScope]
  for (const part of [scope.inputs, scope.env]) {
    const found = readPath(part, [name])
    if (found.found) return found.value
  }
  return undefined
}
