import type { Steps } from '../../../base/steps.ts'
import type { Saw } from '../episode.ts'
import { foldCase, foldCaseSource } from '../../../base/fold-case.ts'
import { type ContextPath, sumOf, valueAt } from './facts/condition.ts'
import { daysOf, type Leaf, leavesOf, readingsOf } from './facts/facts.ts'
import { LEAST_EACH, MOST_VALUES } from './guards.ts'
import { farSpanOf, type NumberRange, spanOf } from './facts/ranges.ts'
import { isReading } from './facts/readings.ts'
import { LONGEST_TEXT } from '../../../base/words-of.ts'

/**
 * A way to find an argument in a context. `pattern` is the source of a RegExp with one group.
 * `plus` is added to a number that is a whole field, which is taken from it with `less`. `scaled`
 * is what a number is multiplied with and divided by, `by` another number and what is done with it.
 * `written`: the text of a number, with so many decimal places. `tidy`: how a text is changed
 * first.
 */
export type Extractor = {
  path: ContextPath
  pattern: string | null
  as: 'string' | 'number'
  plus?: number
  less?: true
  scaled?: { times: number; over: number; places: number }
  by?: { path: ContextPath; does: 'minus' | 'plus' | 'times'; places: number }
  written?: true | number
  tidy?: Tidy
}
export type Tidy = 'trimmed' | 'lower' | 'trimmed lower' | 'upper'
/** Tried in order; the first that finds something gives the value. */
export type ReplySlot = { slot: readonly Extractor[] }
type Example = { saw: Saw; value: string | number }

/** Share of examples that a slot must find, and may get wrong: a teacher makes mistakes. */
export const FOUND = 0.9
export const WRONG = 0.04
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
const fallbacks = (tried: readonly Example[]): Extractor[] => [EVENT_ID, ...shiftedFields(tried), ...computedFields(tried)]

/** With fewer values, each is a decision of its own. */
const LEAST_SHIFTED = 3
const SHIFTS_FROM = 8

/** Fields with one difference to the value in several examples, or with one sum. */
function shiftedFields(tried: readonly Example[]): Extractor[] {
  if (new Set(tried.map(({ value }) => value)).size < LEAST_SHIFTED) return []
  const found = new Map<string, { extractor: Extractor; times: number }>()
  for (const { saw, value } of spread(tried, SHIFTS_FROM))
    for (const { path, value: leaf } of leavesOf(saw).leaves) {
      if (typeof value !== 'number' || typeof leaf !== 'number' || path[0] !== 'event') continue
      const own = { path, pattern: null, as: 'number' } as const
      for (const extractor of [
        { ...own, plus: sumOf(value, -leaf) },
        { ...own, plus: sumOf(value, leaf), less: true as const },
      ]) {
        const key = JSON.stringify(extractor)
        found.set(key, { extractor, times: (found.get(key)?.times ?? 0) + 1 })
      }
    }
  return Array.from(found.values()).flatMap(({ extractor, times }) => (times > SHIFTS_FROM / 2 ? [extractor] : []))
}

const isFound = (extractor: Extractor, tried: readonly Example[]): boolean => {
  const { right, wrong } = score(extractor, tried)
  return right.length >= tried.length * FOUND && wrong <= tried.length * WRONG
}

type Result = { extractor: Extractor; right: number[]; wrong: number }

export const spread = <Item>(items: readonly Item[], most: number): Item[] =>
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

const isComputed = ({ path, scaled, by }: Extractor): boolean => (scaled ?? by) !== undefined || isReading(path)
const isPart = ({ pattern }: Extractor): boolean => pattern !== null
/** Contexts of one step. */
const SAWS_OF_STEP = 100

/** The numbers, or the few words, that are accepted from a slot. */
export type Taken = { range: NumberRange } | { words: readonly string[] }

/** The values if they are few words, without digits; null if a new one is usual. */
function fewWordsOf(values: readonly unknown[]): readonly string[] | null {
  const counts = [...Map.groupBy(values, (value) => value)].map(([value, own]) => ({ value, count: own.length }))
  const usual = counts.filter(({ count }) => count >= LEAST_EACH)
  const words = usual.flatMap(({ value }) => (typeof value === 'string' && !/\d/.test(value) ? [value] : []))
  const rare = values.length - usual.reduce((sum, { count }) => sum + count, 0)
  const isFew = words.length > 0 && words.length <= MOST_VALUES && words.length === usual.length
  return isFew && rare <= values.length * WRONG ? words.sort() : null
}

/**
 * The values that a slot gave, where no guard of a field knows them: computed numbers, whose parts
 * may each be in its own range while they are not, and parts of texts. Null for texts that vary.
 */
export function* takenOf({ slot }: ReplySlot, saws: readonly Saw[]): Steps<Taken | null> {
  const computed = slot.some(isComputed)
  if (!computed && !slot.some(isPart)) return null
  const values: (string | number | undefined)[] = []
  for (const [index, saw] of saws.entries()) {
    if (index % SAWS_OF_STEP === 0) yield
    values.push(extract({ slot }, saw))
  }
  const words = fewWordsOf(values)
  if (words) return { words }
  if (!computed && !slot.some(({ as }) => as === 'number')) return null
  const numbers = values.map(Number).filter((value) => !Number.isNaN(value))
  const range = spanOf(numbers.map((value) => [value])) ?? (computed ? farSpanOf(numbers) : null)
  return range && { range }
}

const compiled = new Map<string, RegExp>()

/** Undefined if the pattern finds nothing, or more than one value. */
function extractOne({ path, pattern, as, plus, less, scaled, by, written, tidy }: Extractor, saw: Saw): string | number | undefined {
  const found = valueAt(saw, path)
  const value = tidy === undefined ? found : tidied(found, tidy)
  if (plus !== undefined) return typeof value === 'number' ? sumOf(less ? -value : value, plus) : undefined
  if (scaled) return scaledBy(value, scaled)
  if (by) return combined(value, valueAt(saw, by.path), by)
  if (written) return typeof value !== 'number' ? undefined : written === true ? String(value) : value.toFixed(written)
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
  [/^[^\s/]+$/, '[^\\s/]+?'],
  [/^\S+$/, '\\S+?'],
  [/^/, '\\S.*?'],
]

export function candidatesOf({ saw, value }: Example): Extractor[] {
  const as = typeof value === 'number' ? 'number' : 'string'
  const found: Extractor[] = []
  const text = String(value)
  for (const { path, value: leaf } of placesIn(saw)) {
    if (leaf === value) found.push({ path, pattern: null, as })
    if (typeof leaf === 'number' && as === 'string')
      for (const written of writings(leaf, text)) found.push({ path, pattern: null, as, written })
    if (typeof leaf !== 'string') continue
    for (const pattern of patternsOf(leaf.slice(0, LONGEST_TEXT), text)) found.push({ path, pattern, as })
    if (as === 'string') for (const tidy of TIDY) found.push(...tidiedExtractors({ path, leaf, text, tidy }))
  }
  return found
}

/** The values in a context, and what is read from them. */
function placesIn(saw: Saw): Leaf[] {
  const leaves = leavesOf(saw)
  return [...leaves.leaves, ...readingsOf(saw, leaves)]
}

const MOST_PLACES = 6

function writings(leaf: number, text: string): (true | number)[] {
  if (String(leaf) === text) return [true]
  const places = /^-?\d+\.(\d+)$/.exec(text)?.[1]?.length ?? 0
  return places > 0 && places <= MOST_PLACES && leaf.toFixed(places) === text ? [places] : []
}

const TIDY: readonly Tidy[] = ['trimmed', 'lower', 'trimmed lower', 'upper']
/** Large letters of other scripts depend on the engine. */
const ASCII = /^[ -~]*$/

function tidied(value: unknown, tidy: Tidy): string | undefined {
  if (typeof value !== 'string') return undefined
  if (tidy === 'upper') return ASCII.test(value) ? value.toUpperCase() : undefined
  const text = tidy === 'lower' ? value : value.trim()
  return tidy === 'trimmed' ? text : foldCase(text)
}

/** The same in learned code. */
export const TIDIED_SOURCE = `// A text without the spaces around it, or in small or large letters.
function tidied(text, tidy) {
  if (typeof text !== 'string') return undefined
  if (tidy === 'upper') return ${String(ASCII)}.test(text) ? text.toUpperCase() : undefined
  const kept = tidy === 'lower' ? text : text.trim()
  return tidy === 'trimmed' ? kept : ${foldCaseSource('kept')}
}`

/** The changed text as a whole, or a part of it, where the text as it is does not have it. */
function tidiedExtractors({ path, leaf, text, tidy }: { path: ContextPath; leaf: string; text: string; tidy: Tidy }): Extractor[] {
  const changed = tidied(leaf.slice(0, LONGEST_TEXT), tidy)
  if (changed === undefined || changed === leaf) return []
  if (changed === text) return [{ path, pattern: null, as: 'string', tidy }]
  if (tidy.startsWith('trimmed') || leaf.includes(text)) return []
  return patternsOf(changed, text).map((pattern) => ({ path, pattern, as: 'string' as const, tidy }))
}

type Scale = NonNullable<Extractor['scaled']>

/** The distance from the middle of two numbers that is rounded either way. */
const HALF = 1e-6

/** A number to so many decimal places; undefined for one that is in the middle of two. */
export function roundedTo(value: number, places: number): number | undefined {
  const units = Math.abs(value) * 10 ** places
  return Math.abs(units - Math.floor(units) - 0.5) < HALF ? undefined : Number(value.toFixed(places))
}

const scaledBy = (value: unknown, { times, over, places }: Scale): number | undefined =>
  typeof value === 'number' ? roundedTo((value * times) / over, places) : undefined

function combined(one: unknown, other: unknown, { does, places }: NonNullable<Extractor['by']>): number | undefined {
  if (typeof one !== 'number' || typeof other !== 'number') return undefined
  if (does === 'times') return roundedTo(one * other, places)
  return roundedTo(does === 'minus' ? one - other : one + other, places)
}

/** The same in learned code. */
export const ROUNDED_SOURCE = `// To so many decimal places; undefined in the middle of two numbers, which are rounded either way.
function roundedTo(value, places) {
  const units = Math.abs(value) * 10 ** places
  return Math.abs(units - Math.floor(units) - 0.5) < ${HALF} ? undefined : Number(value.toFixed(places))
}`

const decimalsOf = (value: number): number => (/e/.test(String(value)) ? Infinity : (String(value).split('.')[1]?.length ?? 0))
/** Numbers of one event that are computed with, two by two. */
const MOST_COMPUTED = 12

/**
 * Numbers that are a constant share of a number, or that two of them give, in more than half of a
 * few examples. `least`: in so many.
 */
export function computedFields(tried: readonly Example[], least = SHIFTS_FROM / 2 + 1): Extractor[] {
  const numbers = tried.flatMap(({ value }) => (typeof value === 'number' ? [value] : []))
  const places = numbers.reduce((most, value) => Math.max(most, decimalsOf(value)), 0)
  if (numbers.length < tried.length || new Set(numbers).size < LEAST_SHIFTED || places > MOST_PLACES) return []
  const few = spread(tried, SHIFTS_FROM)
  const found = new Map<string, Extractor>()
  for (const { saw, value } of few) {
    const own = numbersIn(saw)
    for (const leaf of own) for (const one of scales(leaf, Number(value), places)) found.set(JSON.stringify(one), one)
    for (const one of computed(saw, own, places)) found.set(JSON.stringify(one), one)
  }
  return [...found.values()].filter((extractor) => score(extractor, few).right.length >= least)
}

const numbersIn = (saw: Saw): Leaf[] =>
  placesIn(saw)
    .filter(({ path: [first, part], value }) => typeof value === 'number' && (first === 'event' || part === 'event'))
    .slice(0, MOST_COMPUTED)

/** The shortest factors, and divisors, with which the number gives the value. */
function scales({ path, value: leaf }: Leaf, value: number, places: number): Extractor[] {
  if (typeof leaf !== 'number' || leaf === 0 || value === 0) return []
  const half = 0.5 * 10 ** -places
  const one = shortest((value - half) / leaf, (value + half) / leaf)
  const other = shortest(leaf / (value - half), leaf / (value + half))
  return [
    { times: one, over: 1, places },
    { times: 1, over: other, places },
  ].flatMap((scaled): Extractor[] => (scaled.times === 0 || scaled.over === 0 ? [] : [{ path, pattern: null, as: 'number', scaled }]))
}

const MOST_DIGITS = 6

/** The number of fewest digits between two; 0: they are too close, or on both sides of 0. */
function shortest(one: number, other: number): number {
  const [low, high] = one < other ? [one, other] : [other, one]
  for (let digits = 1; digits <= MOST_DIGITS; digits += 1) {
    const value = Number(((low + high) / 2).toPrecision(digits))
    if (value >= low && value <= high) return value
  }
  return 0
}

function computed(saw: Saw, numbers: readonly Leaf[], places: number): Extractor[] {
  const pairs = (all: readonly Pick<Leaf, 'path'>[], does: readonly NonNullable<Extractor['by']>['does'][]): Extractor[] =>
    all.flatMap(({ path }, at) =>
      all.flatMap(({ path: other }, place) =>
        does.flatMap((one): Extractor[] =>
          place === at || (one !== 'minus' && place < at)
            ? []
            : [{ path, pattern: null, as: 'number', by: { path: other, does: one, places } }],
        ),
      ),
    )
  return [...pairs(numbers, ['minus', 'plus', 'times']), ...pairs(daysOf(saw, leavesOf(saw)), ['minus'])]
}

const MOST_COMPOSED = 8
const SHORTEST_PART = 2

/**
 * The texts that values of the event give with constant parts between them. Of each candidate, the
 * parts are what one example has: others tell which are so by chance.
 */
export function composedFrom(examples: readonly Example[], most = MOST_COMPOSED): (string | ReplySlot)[][] {
  return spread(examples, most).flatMap(({ saw, value }) => {
    const parts = typeof value === 'string' ? partsIn(value, saw) : []
    return parts.length > 1 && parts.some((part) => typeof part !== 'string') ? [parts] : []
  })
}

function partsIn(text: string, saw: Saw): (string | ReplySlot)[] {
  const known = placesIn(saw).flatMap(({ path, value }): { says: string; extractor: Extractor }[] => {
    if (path[0] === 'window' || path[1] === 'type') return []
    if (typeof value === 'number') return [{ says: String(value), extractor: { path, pattern: null, as: 'string', written: true } }]
    if (typeof value !== 'string') return []
    const plain = { says: value, extractor: { path, pattern: null, as: 'string' as const } }
    const changed = TIDY.flatMap((tidy) => {
      const says = tidied(value.slice(0, LONGEST_TEXT), tidy)
      return says === undefined || says === value ? [] : [{ says, extractor: { path, pattern: null, as: 'string' as const, tidy } }]
    })
    return [plain, ...changed].filter(({ says }) => says.length >= SHORTEST_PART)
  })
  known.sort((one, other) => other.says.length - one.says.length)
  const parts: (string | ReplySlot)[] = []
  const split = (rest: string, from: number): void => {
    const at = known.findIndex(({ says }, index) => index >= from && rest.includes(says))
    const found = known[at]
    if (rest === '') return
    if (!found) return void parts.push(rest)
    const place = rest.indexOf(found.says)
    split(rest.slice(0, place), at)
    parts.push({ slot: [found.extractor] })
    split(rest.slice(place + found.says.length), at)
  }
  split(text, 0)
  return parts
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
