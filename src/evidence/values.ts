import { fnv1a } from '../base/fnv1a.ts'
import { foldCase } from '../base/fold-case.ts'
import { isJsonFields } from '../base/json.ts'
import { NAMING } from './novelty.ts'

/** An act on a large event costs no more than one on a small event. */
const USUAL = { values: 32, text: 500 }
export type ValueBounds = typeof USUAL
export const ALL_VALUES: ValueBounds = { values: Number.POSITIVE_INFINITY, text: Number.POSITIVE_INFINITY }
const DEEPEST = 3
/** Numbers, and words with three digits, which name one thing, are alike. */
const NAMED = /^\d\d+$|\d\D*\d\D*\d/

/**
 * The values of an event that come again, by which a decision may differ: the words of its texts,
 * what is true or false, and single digits, each as a short hash with the place where it stands.
 */
export function valuesIn(event: object, most: ValueBounds = USUAL): string[] {
  const found = { keys: new Set<string>(), most }
  for (const [name, value] of Object.entries(event)) if (!NAMING.has(name)) collect(name, value, found)
  return Array.from(found.keys).slice(0, most.values)
}

type Collected = { keys: Set<string>; most: ValueBounds }

function collect(path: string, value: unknown, found: Collected, depth = 0): void {
  const { keys, most } = found
  if (keys.size >= most.values) return
  if (typeof value === 'string') for (const word of wordsIn(value.slice(0, most.text))) keys.add(valueKey(path, word))
  else if (typeof value === 'boolean' || (Number.isInteger(value) && Math.abs(Number(value)) < 10)) keys.add(valueKey(path, String(value)))
  else if (depth >= DEEPEST) return
  else if (Array.isArray(value)) for (const item of value.slice(0, most.values)) collect(path, item, found, depth + 1)
  else if (isJsonFields(value)) for (const [name, inner] of Object.entries(value)) collect(`${path}.${name}`, inner, found, depth + 1)
}

const wordsIn = (text: string): string[] =>
  foldCase(text)
    .split(/[^\p{L}\p{N}]+/u)
    .flatMap((word) => (word === '' ? [] : [NAMED.test(word) ? '#' : word]))

/** Two values may share a hash: each counts for the other then. */
export const valueKey = (path: string, word: string): string => (fnv1a(`${path} ${word}`) % 36 ** 4).toString(36)

/** Acts since the last audit, by value. */
type Unaudited = Readonly<Record<string, number>>

/** Values that are counted; rarer ones are forgotten first. */
const MOST_COUNTED = 64

/** The counts after one more act with these values, which was audited or not. */
export function countValues(before: Unaudited, values: readonly string[], isAudited: boolean): Unaudited {
  const after = new Map(Object.entries(before))
  for (const value of values) {
    const count = isAudited ? 0 : (after.get(value) ?? 0) + 1
    after.delete(value)
    if (count > 0) after.set(value, count)
  }
  if (after.size <= MOST_COUNTED) return Object.fromEntries(after)
  // The last ones were seen last: a sort keeps their order.
  const kept = Array.from(after)
    .toSorted(([, one], [, other]) => one - other)
    .slice(-MOST_COUNTED)
  return Object.fromEntries(kept)
}
