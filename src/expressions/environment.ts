import { Environment } from '@marcbachmann/cel-js'
import type { z } from 'zod'

/**
 * Counts the work of an evaluation, about a nanosecond per unit. The count is the same on every
 * machine, unlike a clock.
 */
export type Work = { left: number }

/** An evaluation: about 5 ms at most. */
export const EVALUATION_WORK = 5_000_000
/** All evaluations of one decision together: a manifest may hold 96 expressions. */
export const DECISION_WORK = 10_000_000

/** CEL's `||` and quantifiers swallow errors, so check `isSpent` after evaluating. */
export class WorkSpent extends Error {
  override readonly name = 'WorkSpent'
}

/** A single object for all: a stack for each remaining item would be expensive. */
const SPENT = new WorkSpent('the work is spent')

/** Evaluation is synchronous, so one variable holds the current account. */
let account: Work | null = null

export const isSpent = ({ left }: Work): boolean => left < 0

/** Takes units from the current evaluation. */
export function spend(units: number): void {
  if (account === null) throw new Error('an expression is evaluated outside of an account')
  account.left -= units
  if (account.left < 0) throw SPENT
}

/** Charges the work to an account, and to the account of an enclosing evaluation. */
export function onAccount<Result>(work: Work, evaluate: () => Result): Result {
  const outer = account
  const before = work.left
  account = work
  try {
    return evaluate()
  } finally {
    account = outer
    if (outer !== null && outer !== work) outer.left -= before - work.left
  }
}

type Json = z.core.util.JSONType

const DEEPEST = 32
const LONGEST_LIST = 1000
const MOST_NODES = 5000
const LONGEST_STRING = 20_000
/** Includes the names of fields. */
const MOST_TEXT = 65_536

/** Thrown if a value exceeds the size limit of expressions. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge'
}

/** JSON as CEL values: whole numbers become integers, objects become maps. */
export const toCel = (value: unknown): unknown => converter().convert(value)

/** Converts values within shared limits. `values` counts them. */
export function converter(): { convert: (value: unknown) => unknown; values: () => number } {
  const left = { nodes: MOST_NODES, text: MOST_TEXT }
  const take = (characters: number): void => {
    left.text -= characters
    if (left.text < 0) throw new TooLarge(`holds more than ${MOST_TEXT} characters of text`)
  }
  const convert = (inner: unknown, depth: number): unknown => {
    if (--left.nodes < 0) throw new TooLarge(`holds more than ${MOST_NODES} values`)
    if (depth > DEEPEST) throw new TooLarge(`is nested deeper than ${DEEPEST} levels`)
    if (typeof inner === 'number') return Number.isSafeInteger(inner) ? BigInt(inner) : inner
    if (typeof inner === 'string') {
      if (inner.length > LONGEST_STRING) throw new TooLarge(`holds a string longer than ${LONGEST_STRING}`)
      take(inner.length)
      return inner
    }
    if (typeof inner === 'boolean' || inner === null) return inner
    if (Array.isArray(inner) && inner.length > LONGEST_LIST) throw new TooLarge(`holds a list of more than ${LONGEST_LIST}`)
    if (Array.isArray(inner)) return inner.map((item) => convert(item, depth + 1))
    if (typeof inner !== 'object' || inner instanceof Promise) throw new TypeError(`${typeof inner} is not JSON`)
    const fields = new Map<string, unknown>()
    for (const name in inner) {
      const field = Object.hasOwn(inner, name) ? (inner as Record<string, unknown>)[name] : undefined
      if (field === undefined) continue
      take(name.length)
      fields.set(name, convert(field, depth + 1))
    }
    return fields
  }
  return { convert: (value) => convert(value, 0), values: () => MOST_NODES - left.nodes }
}

/** Converts CEL values to JSON, for the arguments of a probe. */
export function fromCel(value: unknown): Json {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' || value === null) return value
  if (Array.isArray(value)) return value.map(fromCel)
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([name, inner]) => [String(name), fromCel(inner)]))
  if (isPlainObject(value)) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fromCel(inner)]))
  throw new TypeError('only JSON can be handed to a probe')
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Functions of the host that expressions may call by name. */
export type ExpressionHost = { call(name: string, args: readonly unknown[]): unknown }

/** Bounds the length; `work.ts` bounds the work. */
const limits = { maxAstNodes: 200, maxDepth: 24, maxListElements: 50, maxMapEntries: 20, maxCallArguments: 8 }

const arithmetic = {
  '+': (left: number, right: number) => left + right,
  '-': (left: number, right: number) => left - right,
  '*': (left: number, right: number) => left * right,
  '/': (left: number, right: number) => left / right,
}

/** JSON has one kind of number, CEL has two, and CEL does not mix them. */
function baseEnvironment(): Environment {
  const environment = new Environment({ unlistedVariablesAreDyn: true, homogeneousAggregateLiterals: false, limits })
  for (const [sign, compute] of Object.entries(arithmetic)) {
    const handler = (left: bigint | number, right: bigint | number) => compute(Number(left), Number(right))
    environment.registerOperator(`int ${sign} double: double`, handler)
    environment.registerOperator(`double ${sign} int: double`, handler)
  }
  return environment
}

export const base = baseEnvironment()

/** Evaluation is synchronous, so one variable holds the current host. */
let serving: ExpressionHost | null = null

export function withHost<Result>(host: ExpressionHost | null, evaluate: () => Result): Result {
  const before = serving
  serving = host
  try {
    return evaluate()
  } finally {
    serving = before
  }
}

/** An environment in which each of `names` is a function that calls the current host. */
export function environmentWith(names: ReadonlySet<string>): Environment {
  if (names.size === 0) return base
  const environment = base.clone()
  for (const name of names) {
    for (let count = 0; count <= limits.maxCallArguments; count++) {
      const handler = (...args: unknown[]): unknown => {
        if (!serving) throw new Error(`${name} is called outside of an evaluation`)
        return serving.call(name, args)
      }
      environment.registerFunction(`${name}(${Array(count).fill('dyn').join(', ')}): dyn`, handler, { async: false })
    }
  }
  return environment
}
