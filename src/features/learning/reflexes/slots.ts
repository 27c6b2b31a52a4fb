import type { Steps } from '../../../base/steps.ts'
import type { Saw } from '../episode.ts'
import { type ContextPath, sumOf, valueAt } from './facts/condition.ts'
import { leavesOf } from './facts/facts.ts'
import { LONGEST_TEXT } from './facts/text.ts'

/**
 * A way to find an argument in a context. `pattern` is the source of a RegExp with one group.
 * `plus` is added to a number that is a whole field. `written`: the text of such a number.
 */
export type Extractor = { path: ContextPath; pattern: string | null; as: 'string' | 'number'; plus?: number; written?: true }
/** Tried in order; the first that finds something gives the value. */
export type ReplySlot = { slot: readonly Extractor[] }
type Example = { saw: Saw; value: string | number }

/** Share of examples that a slot must find, and may get wrong: a teacher makes mistakes. */
const FOUND = 0.9
const WRONG = 0.04
const MOST_EXTRACTORS = 4
const TAUGHT_BY = 80
const TRIED_ON = 400
/** Examples, extractors and results of one step. */
const TAUGHT_OF_STEP = 5
const TRIED_OF_STEP = 5
const RESULTS_OF_STEP = 100

/** The slot that gives these values from these contexts, or null. */
export function* slotOf(examples: readonly Example[]): Steps<ReplySlot | null> {
  const taught = spread(examples, TAUGHT_BY)
  const tried = spread(examples, TRIED_ON)
  const candidates = new Map<string, Extractor>()
  for (const [index, example] of taught.entries()) {
    if (index % TAUGHT_OF_STEP === 0) yield
    for (const extractor of candidatesOf(example)) candidates.set(JSON.stringify(extractor), extractor)
  }
  const results: Result[] = []
  for (const [index, extractor] of [...candidates.values()].entries()) {
    if (index % TRIED_OF_STEP === 0) yield
    const { right, wrong } = score(extractor, tried)
    if (right.length > 1 && wrong <= (right.length + wrong) * WRONG) results.push({ extractor, right, wrong })
  }
  results.sort(
    (one, other) =>
      other.right.length - one.right.length ||
      one.wrong - other.wrong ||
      JSON.stringify(one.extractor).length - JSON.stringify(other.extractor).length,
  )
  const chosen: Extractor[] = []
  const found = new Set<number>()
  for (let round = 0; round < MOST_EXTRACTORS; round += 1) {
    let best: { extractor: Extractor; fresh: number } | null = null
    for (const [index, { extractor, right }] of results.entries()) {
      if (index % RESULTS_OF_STEP === 0) yield
      const fresh = right.filter((index) => !found.has(index)).length
      if (fresh > (best?.fresh ?? Math.max(1, tried.length * 0.005))) best = { extractor, fresh }
    }
    if (best === null) break
    const { extractor } = best
    chosen.push(extractor)
    for (const index of results.find((result) => result.extractor === extractor)?.right ?? []) found.add(index)
  }
  if (found.size < tried.length * FOUND) {
    const other = fallbacks(tried).find((extractor) => isFound(extractor, tried))
    return other ? { slot: [other] } : null
  }
  const wrong = tried.filter(({ saw, value }) => ![undefined, value].includes(extract({ slot: chosen }, saw))).length
  return wrong <= tried.length * WRONG ? { slot: chosen } : null
}

/** No decision depends on an id, and a field of the event that says the same is preferred to it. */
const EVENT_ID: Extractor = { path: ['event', 'id'], pattern: null, as: 'string' }

/** The extractors of what no field of the event says as it is. */
const fallbacks = (tried: readonly Example[]): Extractor[] => [EVENT_ID, ...shiftedFields(tried)]

/** With fewer values, each is a decision of its own. */
const LEAST_SHIFTED = 3
const SHIFTS_FROM = 8

/** Fields that are as much above or below the value in several examples. */
function shiftedFields(tried: readonly Example[]): Extractor[] {
  if (new Set(tried.map(({ value }) => value)).size < LEAST_SHIFTED) return []
  const found = new Map<string, { extractor: Extractor; times: number }>()
  for (const { saw, value } of spread(tried, SHIFTS_FROM))
    for (const { path, value: leaf } of leavesOf(saw).leaves) {
      if (typeof value !== 'number' || typeof leaf !== 'number' || path[0] !== 'event') continue
      const extractor: Extractor = { path, pattern: null, as: 'number', plus: sumOf(value, -leaf) }
      const key = JSON.stringify(extractor)
      found.set(key, { extractor, times: (found.get(key)?.times ?? 0) + 1 })
    }
  return Array.from(found.values()).flatMap(({ extractor, times }) => (times > SHIFTS_FROM / 2 ? [extractor] : []))
}

const isFound = (extractor: Extractor, tried: readonly Example[]): boolean => {
  const { right, wrong } = score(extractor, tried)
  return right.length >= tried.length * FOUND && wrong <= tried.length * WRONG
}

type Result = { extractor: Extractor; right: number[]; wrong: number }

const spread = <Item>(items: readonly Item[], most: number): Item[] =>
  items.length <= most ? [...items] : Array.from({ length: most }, (_, index) => items[Math.floor((index * items.length) / most)] as Item)

function score(extractor: Extractor, examples: readonly Example[]): Omit<Result, 'extractor'> {
  const right: number[] = []
  let wrong = 0
  examples.forEach(({ saw, value }, index) => {
    const got = extractOne(extractor, saw)
    if (got === value) right.push(index)
    else if (got !== undefined) wrong += 1
  })
  return { right, wrong }
}

export function extract({ slot }: ReplySlot, saw: Saw): string | number | undefined {
  for (const extractor of slot) {
    const value = extractOne(extractor, saw)
    if (value !== undefined) return value
  }
  return undefined
}

const compiled = new Map<string, RegExp>()

/** Undefined if the pattern finds nothing, or more than one value. */
function extractOne({ path, pattern, as, plus, written }: Extractor, saw: Saw): string | number | undefined {
  const value = valueAt(saw, path)
  if (plus !== undefined) return typeof value === 'number' ? sumOf(value, plus) : undefined
  if (written) return typeof value === 'number' ? String(value) : undefined
  if (pattern === null) return typeof value === as ? (value as string | number) : undefined
  if (typeof value !== 'string') return undefined
  const expression = compiled.get(pattern) ?? new RegExp(pattern, 'g')
  if (compiled.size < 10_000) compiled.set(pattern, expression)
  let only: string | undefined
  for (const [, part] of value.slice(0, LONGEST_TEXT).matchAll(expression)) {
    if (only !== undefined && part !== only) return undefined
    only = part
  }
  return only === undefined || as === 'string' ? only : Number(only)
}

const KINDS: readonly [RegExp, string][] = [
  [/^\d{1,3}(?:\.\d{1,3}){3}$/, '\\d{1,3}(?:\\.\\d{1,3}){3}'],
  [/^\d+$/, '\\d+'],
  [/^\d+[.,]\d+$/, '\\d+[.,]\\d+'],
  [/^[^\s@]+@[^\s@]+$/, '[^\\s@]+@[^\\s@]+'],
  [/^https?:\/\/\S+$/, 'https?:\\/\\/\\S+'],
  [/^[\w-]+$/, '[\\w-]+'],
  [/^\S+$/, '\\S+?'],
  [/^/, '\\S.*?'],
]

function candidatesOf({ saw, value }: Example): Extractor[] {
  const as = typeof value === 'number' ? 'number' : 'string'
  const found: Extractor[] = []
  for (const { path, value: leaf } of leavesOf(saw).leaves) {
    if (leaf === value) found.push({ path, pattern: null, as })
    if (typeof leaf === 'number' && String(leaf) === value) found.push({ path, pattern: null, as, written: true })
    if (typeof leaf !== 'string') continue
    for (const pattern of patternsOf(leaf.slice(0, LONGEST_TEXT), String(value))) found.push({ path, pattern, as })
  }
  return found
}

/** Patterns that end where a text does are tried from each character of it. */
const LONGEST_EDGE = 100

function patternsOf(text: string, value: string): string[] {
  const at = text.indexOf(value)
  if (at < 0 || value === '' || text === value) return []
  const kind = KINDS.find(([is]) => is.test(value))?.[1] ?? ''
  const before = text.slice(0, at)
  const after = text.slice(at + value.length)
  const lefts = [
    '(?<![\\w.])',
    ...[/\S+\s+$/, /\S+\s+\S+\s+$/, /[^\w\s]$/, /\w+[^\w\s]$/, /^$/].flatMap((edge) => leftOf(edge.exec(before.slice(-LONGEST_EDGE))?.[0])),
  ]
  const rights = ['(?![\\w.])', '(?=\\s|$)', ...[/^\s+\S+/, /^[^\w\s]/, /^$/].flatMap((edge) => rightOf(edge.exec(after)?.[0]))]
  return lefts.flatMap((left) => rights.map((right) => `${left}(${kind})${right}`))
}

const leftOf = (part: string | undefined): string[] => (part === undefined ? [] : part === '' ? ['^'] : [literal(part)])
const rightOf = (part: string | undefined): string[] => (part === undefined ? [] : part === '' ? ['$'] : [`(?=${literal(part)})`])

/** Text as part of a pattern: every sign that means something to JavaScript is escaped. */
const literal = (text: string): string =>
  text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[^\p{L}\p{N} ]/gu, (character) =>
      Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join(''),
    )
