import type { ParseResult } from '@marcbachmann/cel-js'
import { messageOf } from '../protocol/message-of.ts'
import { environmentWith, withProbes } from './expression/environment.ts'
import { namesOf } from './expression/names.ts'
import { probeSession, type ProbeSession } from './expression/probes.ts'
import { TooLarge, toCel } from './expression/values.ts'
import { isJsonFields } from './json.ts'
import { ROOTS } from './manifest/names.ts'
import { readPath, withPath, type Path } from './path.ts'

/**
 * CEL for invariants, guards and policies.
 *
 * 1. An expression that cannot be evaluated, or is no bool, is never a pass: it comes back as `ok: false`.
 * 2. Bounded before it is run: its length, nodes, depth and functions; and only what it reads is converted, within limits.
 * 3. The same scope and the same recorded probe calls give the same result.
 */
export type Expression = { source: string; paths: readonly Path[]; functions: ReadonlySet<string>; run: ParseResult }

export type Compiled = { ok: true; expression: Expression } | { ok: false; reason: 'invalid'; detail: string }

/** What an expression is evaluated over. A name that is none of these is an input, or else a name in `env`. */
export type ExpressionScope = {
  ctx?: unknown
  env?: unknown
  work?: unknown
  policy?: unknown
  inputs?: unknown
  /** What is proposed, or what the step's tool is called with. */
  args?: unknown
}

export type Evaluation =
  | { ok: true; value: boolean }
  | { ok: false; reason: 'invalid' | 'failed' | 'not_bool' | 'too_large'; detail: string }

const LONGEST_SOURCE = 2000
const MOST_COMPILED = 2000
const compiled = new Map<string, Compiled>()

/** Parses and bounds an expression, once: the most recent ones are kept. */
export function compileExpression(source: string): Compiled {
  if (source.length > LONGEST_SOURCE) return invalid(`the expression has ${source.length} characters; ${LONGEST_SOURCE} are allowed`)
  const known = compiled.get(source)
  if (known) return known
  const fresh = compile(source)
  if (compiled.size >= MOST_COMPILED) compiled.delete(compiled.keys().next().value ?? '')
  compiled.set(source, fresh)
  return fresh
}

function compile(source: string): Compiled {
  try {
    const { paths, functions, refused } = namesOf(environmentWith(new Set()).parse(source).ast)
    if (refused !== null) return invalid(refused)
    const run = environmentWith(functions).parse(source)
    const checked = run.check()
    if (!checked.valid) return invalid(firstLine(checked.error))
    if (checked.type !== 'bool' && checked.type !== 'dyn') return invalid(`the expression is a ${checked.type ?? '?'}; it must be a bool`)
    return { ok: true, expression: { source, paths, functions, run } }
  } catch (error) {
    return invalid(firstLine(error))
  }
}

/** Evaluates to true or false, or says why not. Never throws. */
export function evaluate(source: string, scope: ExpressionScope, probes: ProbeSession = probeSession()): Evaluation {
  const known = compileExpression(source)
  if (!known.ok) return known
  try {
    const variables = variablesOf(known.expression.paths, scope)
    const value: unknown = withProbes(probes, () => known.expression.run(variables))
    if (typeof value === 'boolean') return { ok: true, value }
    return { ok: false, reason: 'not_bool', detail: `the expression gives a ${typeof value}, not true or false` }
  } catch (error) {
    if (error instanceof TooLarge) return { ok: false, reason: 'too_large', detail: `what the expression reads ${error.message}` }
    return { ok: false, reason: 'failed', detail: firstLine(error) }
  }
}

/** What the expression reads and what stands there, for an explanation; undefined where there is nothing. */
export function valuesRead(source: string, scope: ExpressionScope): { path: string; value: unknown }[] {
  const known = compileExpression(source)
  if (!known.ok) return []
  const paths = new Map(known.expression.paths.map((path) => [path.join('.'), path]))
  return Array.from(paths, ([text, path]) => {
    const found = readPath(rootOf(path[0] ?? '', scope), path.slice(1))
    return { path: text, value: found.found ? found.value : undefined }
  })
}

/** Only what is read, each at its path: a large blackboard costs an expression that looks at one field of it nothing. */
function variablesOf(paths: readonly Path[], scope: ExpressionScope): Map<string, unknown> {
  const found = paths.flatMap(([root = '', ...rest]) =>
    deepest(rootOf(root, scope), rest).map((there) => ({ ...there, path: [root, ...there.path] })),
  )
  // What is there only in part comes first, and the longer paths before the shorter ones, which hold them.
  const ordered = found.toSorted((left, right) => Number(left.whole) - Number(right.whole) || right.path.length - left.path.length)
  let known: unknown = {}
  for (const { path, value } of ordered) known = withPath(known, path, value)
  return new Map(Object.entries(known as object).map(([name, value]) => [name, toCel(value)]))
}

type There = { path: Path; value: unknown; whole: boolean }

/** What stands at the path, or else the last thing on the way to it, without what is beside the path. */
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

const invalid = (detail: string): { ok: false; reason: 'invalid'; detail: string } => ({ ok: false, reason: 'invalid', detail })

/** The library's messages go on with a picture of the source. */
const firstLine = (error: unknown): string => messageOf(error).split('\n', 1)[0] ?? ''
