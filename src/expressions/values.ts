import type { z } from 'zod'

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
