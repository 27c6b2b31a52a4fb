import { isJsonFields } from '../../../../base/json.ts'
import { NAMING } from '../../../../evidence/novelty.ts'
import type { Saw } from '../../episode.ts'
import type { Condition, ContextPath } from './condition.ts'
import { beginningOf, wordsOf } from './text.ts'

export const LONGEST_VALUE = 64
export const MOST_DEPTH = 4
export const MOST_ITEMS = 256

export type Leaf = { path: ContextPath; value: string | number | boolean | null }
export type List = { path: ContextPath; items: readonly (string | number)[] }
export type Leaves = { leaves: Leaf[]; lists: List[] }

/** The values in a context that a decision may depend on. */
export function leavesOf(saw: Saw): Leaves {
  const found: Leaves = { leaves: [], lists: [] }
  for (const [name, value] of Object.entries(saw.event)) if (!NAMING.has(name)) collect(value, ['event', name], found)
  if (saw.event.meta?.heard === true) found.leaves.push({ path: ['event', 'meta', 'heard'], value: true })
  collect(saw.scratch, ['scratch'], found)
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
    found.leaves.push({ path: [...path, 'length'], value: value.length })
  } else if (isJsonFields(value) && path.length < MOST_DEPTH + 1) {
    for (const [name, inner] of Object.entries(value)) collect(inner, [...path, name], found)
  }
}

/** Calls `visit` with each condition that holds, numbers aside. */
export function eachFact(saw: Saw, { leaves, lists }: Leaves, visit: (condition: Condition) => void): void {
  for (const { path, value } of leaves) {
    if (typeof value === 'number') continue
    if (typeof value !== 'string' || value.length <= LONGEST_VALUE) visit({ is: 'equal', path, value })
    if (typeof value === 'string') eachWord(path, value, visit)
  }
  for (const { path, items } of lists) {
    for (const value of new Set(items))
      if (typeof value === 'number' || value.length <= LONGEST_VALUE) visit({ is: 'contains', path, value })
  }
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
