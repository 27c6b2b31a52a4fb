import { isJsonFields } from '../../../../base/json.ts'
import { NAMING } from '../../../../evidence/novelty.ts'
import type { Saw } from '../../episode.ts'
import type { Condition, ContextPath } from './condition.ts'
import { amountIn, dayOf, earlierPath, MOST_ITEMS, OF_ITEMS, readingAt } from './readings.ts'
import { wordsOf } from '../../../../base/words-of.ts'
import { beginningOf } from './text.ts'

export const LONGEST_VALUE = 64
export const MOST_DEPTH = 4
/** Outputs have more around their values: `0`, `content`, `0`, `text`. */
export const MOST_DEPTH_RETURNED = 7
/** Items of a list of an output that are read one by one. */
export const MOST_RETURNED_ITEMS = 3
/** Lists that are read as the numbers of their items. */
const MOST_LISTS = 16

/** The first name of a path into an output. */
export const RETURNED = 'returned'
/** The last name of a path to 0 for an empty list of an output, and to 1 for another one. */
export const IS_FILLED = ''

export type Leaf = { path: ContextPath; value: string | number | boolean | null }
/** `of`: the field of items that are objects. */
export type List = { path: ContextPath; of?: string; items: readonly Leaf['value'][] }
export type Leaves = { leaves: Leaf[]; lists: List[] }

/** The values in a context that a decision may depend on. */
export function leavesOf(saw: Saw): Leaves {
  const found: Leaves = { leaves: [], lists: [] }
  for (const [name, value] of Object.entries(saw.event)) if (!NAMING.has(name)) collect(value, ['event', name], found)
  if (saw.event.meta?.heard === true) found.leaves.push({ path: ['event', 'meta', 'heard'], value: true })
  collect(saw.scratch, ['scratch'], found)
  for (const [place, output] of (saw.returned ?? []).entries()) collect(output, [RETURNED, String(place)], found)
  for (const [name, { total, by_type }] of Object.entries(saw.window)) {
    found.leaves.push({ path: ['window', name, 'total'], value: total })
    collect(by_type, ['window', name, 'by_type'], found)
  }
  return found
}

function collect(value: unknown, path: ContextPath, found: Leaves): void {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    found.leaves.push({ path, value })
  else if (Array.isArray(value)) {
    const items = value.slice(0, MOST_ITEMS).filter((item) => typeof item === 'string' || typeof item === 'number')
    found.lists.push({ path, items })
    // An output may have a number that is named so.
    const size = path[0] === RETURNED ? { name: IS_FILLED, value: Math.min(value.length, 1) } : { name: 'length', value: value.length }
    found.leaves.push({ path: [...path, size.name], value: size.value })
    found.lists.push(...fieldsOfItems(value, path))
    // The items of an event are asked about together.
    if (path[0] === RETURNED && path.length < MOST_DEPTH_RETURNED + 1)
      for (const [place, item] of value.slice(0, MOST_RETURNED_ITEMS).entries()) collect(item, [...path, String(place)], found)
  } else if (isJsonFields(value) && path.length < (path[0] === RETURNED ? MOST_DEPTH_RETURNED : MOST_DEPTH) + 1) {
    for (const [name, inner] of Object.entries(value)) collect(inner, [...path, name], found)
  }
}

/** False for a number of items, of which the sum, the most and the least are asked about. */
export const isAskedItem = (value: Leaf['value'], of: string | undefined): boolean =>
  typeof value === 'string' ? value.length <= LONGEST_VALUE : of === undefined || typeof value !== 'number'

/** The fields of the items of a list that are objects. */
function fieldsOfItems(list: readonly unknown[], path: ContextPath): List[] {
  const found = new Map<string, Leaf['value'][]>()
  for (const item of list.slice(0, MOST_ITEMS)) {
    if (!isJsonFields(item)) continue
    for (const [of, value] of Object.entries(item)) {
      if (typeof value === 'object' && value !== null) continue
      const known = found.get(of)
      if (known) known.push(value)
      else found.set(of, [value])
    }
  }
  return Array.from(found, ([of, items]) => ({ path, of, items }))
}

/** The readings of a context, dates apart, which only say something in pairs. */
export function readingsOf(saw: Saw, { leaves, lists }: Leaves): Leaf[] {
  const found: Leaf[] = []
  const add = (path: ContextPath, value: unknown): void => {
    if (typeof value === 'number' || typeof value === 'string') found.push({ path, value })
  }
  for (const { path, value } of leaves) if (typeof value === 'string' && path[0] !== 'window') add(['amount', ...path], amountIn(value))
  for (const { path, of, items } of lists.slice(0, MOST_LISTS)) {
    if (of === undefined) continue
    if (typeof items[0] === 'number') for (const reading of OF_ITEMS) add([reading, ...path, of], readingAt([reading, ...path, of], saw))
  }
  add(['before'], readingAt(['before'], saw))
  return found
}

/** The dates of an event, and when it came. */
export function daysOf({ event }: Saw, { leaves }: Leaves): { path: ContextPath; value: number }[] {
  const own: Leaf[] = [...leaves, { path: ['event', 'timestamp'], value: event.timestamp }]
  return own.flatMap(({ path, value }) => {
    const day = path[0] === 'event' ? dayOf(value) : undefined
    return day === undefined ? [] : [{ path: ['day', ...path], value: day }]
  })
}

/** Texts and numbers of an event that are compared with earlier ones: the first ones. */
const MOST_KEYS = 4
const MOST_CHANGING = 6

/**
 * The numbers of an event, each beside the number there in an earlier event that says the same in
 * one field, such as the device; if no event does, in the last one.
 */
export function changesOf(saw: Saw, { leaves }: Leaves): { path: ContextPath; minus: ContextPath }[] {
  if (saw.recent_events.length < 2) return []
  const own = leaves.filter(({ path }) => path[0] === 'event' && path[1] !== 'type' && path[1] !== 'meta')
  const numbers = own.filter(({ value }) => typeof value === 'number').slice(0, MOST_CHANGING)
  const texts = own.filter(({ value }) => typeof value === 'string' && dayOf(value) === undefined)
  const since = ([, ...key]: ContextPath) =>
    numbers.flatMap(({ path }) => {
      const minus = earlierPath({ key, path: path.slice(1) })
      return typeof readingAt(minus, saw) === 'number' ? [{ path, minus }] : []
    })
  const found = texts.slice(0, MOST_KEYS).flatMap(({ path }) => since(path))
  return found.length > 0 ? found : since(['event'])
}

/** Calls `visit` with each condition that holds, numbers aside. */
export function eachFact(saw: Saw, { leaves, lists }: Leaves, visit: (condition: Condition) => void): void {
  for (const name of Object.keys(saw.event)) if (!NAMING.has(name) && name !== 'type') visit({ is: 'present', path: ['event', name] })
  for (const [place, output] of (saw.returned ?? []).entries())
    if (isJsonFields(output)) for (const name of Object.keys(output)) visit({ is: 'present', path: [RETURNED, String(place), name] })
  for (const { path, value } of leaves) {
    if (typeof value === 'number') continue
    // A day does not come again: only its distance from another one says something.
    const isValue = typeof value !== 'string' || (value.length <= LONGEST_VALUE && dayOf(value) === undefined)
    if (isValue) visit({ is: 'equal', path, value })
    if (typeof value === 'string') eachWord(path, value, visit)
  }
  for (const { path, of, items } of lists) {
    for (const value of new Set(items)) if (isAskedItem(value, of)) visit({ is: 'contains', path, ...(of !== undefined && { of }), value })
  }
  const before = readingAt(['before'], saw)
  if (typeof before === 'string' && before.length <= LONGEST_VALUE) visit({ is: 'equal', path: ['before'], value: before })
  const types = ['^', ...saw.recent_events.map(({ type }) => type)]
  for (const length of [2, 3]) if (types.length > length) visit({ is: 'follows', types: types.slice(-length).join(' ') })
}

function eachWord(path: ContextPath, text: string, visit: (condition: Condition) => void): void {
  const words = wordsOf(text)
  const seen = new Set<string>()
  for (let at = 1; at < words.length; at += 1) {
    const pair = `${words[at - 1]} ${words[at]}`
    for (const said of [words[at] ?? '', pair]) {
      if (seen.has(said)) continue
      seen.add(said)
      visit({ is: 'says', path, words: said })
    }
    const letters = beginningOf(words[at] ?? '')
    if (letters === null || seen.has(letters)) continue
    seen.add(letters)
    visit({ is: 'begins', path, letters: letters.slice(0, -1) })
  }
}
