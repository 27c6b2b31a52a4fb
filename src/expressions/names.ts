import type { ASTNode } from '@marcbachmann/cel-js'
import { whenIterations } from '../contract/settings/when.ts'
import { FUNCTIONS as CHARGED } from './charges.ts'
import { patternOf } from './pattern.ts'

type Path = readonly string[]

/** The paths that an expression reads, its functions, and the first forbidden construct. */
export type NamesOf = { paths: Path[]; functions: Set<string>; refused: string | null }

const ITERATING: readonly string[] = whenIterations
/** Nested iterations exceed any budget. */
const REFUSED = new Set(['map', 'bind', 'split', 'join', 'bytes', 'json', 'block'])
const METHODS: readonly string[] = [
  ...ITERATING,
  'size',
  'startsWith',
  'endsWith',
  'contains',
  'matches',
  'lowerAscii',
  'upperAscii',
  'trim',
]
/** Each but `has` has a charge: a function without one is treated as the host's. */
const FUNCTIONS = new Set(['has', ...Object.keys(CHARGED)])

/** Names that have a meaning in CEL. No probe can have them. */
const isTaken = (name: string): boolean => FUNCTIONS.has(name) || METHODS.includes(name) || REFUSED.has(name)

export function namesOf(ast: ASTNode): NamesOf {
  const found: NamesOf = { paths: [], functions: new Set(), refused: null }
  walk(ast, found, null)
  return found
}

/** `bound` is the variable of the enclosing iteration. */
function walk(node: ASTNode, found: NamesOf, bound: string | null): void {
  const path = pathOf(node)
  if (path) {
    if (path[0] !== bound) found.paths.push(path)
    return
  }
  if (node.op === 'call') return walkCall(node.args, found, bound)
  if (node.op === 'rcall') return walkMethod(node.args, found, bound)
  for (const child of childrenOf(node.args)) walk(child, found, bound)
}

function walkCall([name, args]: [string, ASTNode[]], found: NamesOf, bound: string | null): void {
  if (!isTaken(name)) found.functions.add(name)
  else if (!FUNCTIONS.has(name)) found.refused ??= `the function ${name} is not available`
  for (const child of args) walk(child, found, bound)
}

function walkMethod([name, receiver, args]: [string, ASTNode, ASTNode[]], found: NamesOf, bound: string | null): void {
  walk(receiver, found, bound)
  if (!METHODS.includes(name)) found.refused ??= `the function ${name} is not available; there are ${METHODS.join(', ')}`
  if (name === 'matches') found.refused ??= whyNoPattern(args[0])
  if (!ITERATING.includes(name)) {
    for (const child of args) walk(child, found, bound)
    return
  }
  const [variable, ...rest] = args
  if (bound !== null) found.refused ??= `${name} stands within another iteration: that could take too long`
  if (variable?.op !== 'id') found.refused ??= `the first argument of ${name} is the name of a variable`
  for (const child of rest) walk(child, found, variable?.op === 'id' ? variable.args : bound)
}

/** A pattern is written in the expression, so that it is read once, and its mistakes are found. */
function whyNoPattern(node: ASTNode | undefined): string | null {
  if (node?.op !== 'value' || typeof node.args !== 'string') return 'the argument of matches is a text that is written in the expression'
  const found = patternOf(node.args)
  return found.ok ? null : found.detail
}

/** `a.b["c"]` as its parts. A number ends the path. */
export function pathOf(node: ASTNode): string[] | null {
  if (node.op === 'id') return [node.args]
  if (node.op === '.') {
    const before = pathOf(node.args[0])
    return before ? [...before, node.args[1]] : null
  }
  if (node.op !== '[]' || node.args[1].op !== 'value' || typeof node.args[1].args !== 'string') return null
  const before = pathOf(node.args[0])
  return before ? [...before, node.args[1].args] : null
}

export const nodesIn = (node: ASTNode): ASTNode[] => [node, ...childrenOf(node.args).flatMap(nodesIn)]

/** The nodes among a node's arguments, which are nodes, lists of nodes and plain values. */
function childrenOf(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(childrenOf)
  return isNode(args) ? [args] : []
}

const isNode = (value: unknown): value is ASTNode => typeof value === 'object' && value !== null && 'op' in value
