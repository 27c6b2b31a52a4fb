import type { Episode } from '../../episode.ts'
import type { Steps } from '../../../../base/steps.ts'
import { isOfName, numbersIn, type NumberReading } from '../../../../evidence/numbers.ts'
import { type ContextPath, pathKey, valueAt } from './condition.ts'
import { leavesOf, readingsOf } from './facts.ts'
import { isReading, sourceOf } from './readings.ts'

export type NumberRange = readonly [low: number, high: number]
/** The numbers that a reflex accepts in a text, by the words before them, and at all `others`. */
export type TextSpans = {
  path: ContextPath
  at: readonly (readonly [place: string, accepted: NumberRange | 'any'])[]
  others: NumberRange | 'any' | 'none'
}
/** `optional`: decisions were taken without the number, too. */
export type FieldSpan = { path: ContextPath; span: NumberRange; optional?: boolean }

/** Decisions that a span needs, and the share of them that it is made from. */
const LEAST = 20
const OLDER = 0.7
/** Newer decisions that a span may miss. Ids and counters miss most of them: they have no span. */
const MOST_MISSED = 0.02
const MOST_PLACES = 40
/** Texts that are read in a step. */
const STEP = 100
/** Beyond the values seen by the gap that so many values leave: the next one is rarely outside. */
const GAPS = 3

/** The spans of the numbers in texts of the episodes of one decision, oldest first. */
export function* textSpansIn(episodes: readonly Episode[], paths: Iterable<ContextPath>): Steps<TextSpans[]> {
  const spans: TextSpans[] = []
  for (const path of paths) {
    const found = yield* textSpansOf(episodes, path)
    if (found) spans.push(found)
  }
  return spans
}

function* textSpansOf(episodes: readonly Episode[], path: ContextPath): Steps<TextSpans | null> {
  const read: NumberReading[][] = []
  for (const { saw } of episodes) {
    if (read.length % STEP === 0) yield
    const text = valueAt(saw, path)
    read.push(typeof text === 'string' ? numbersIn(text) : [])
  }
  if (read.length < LEAST) return null
  const counts = new Map<string, number>()
  for (const numbers of read) for (const { place } of numbers) counts.set(place, (counts.get(place) ?? 0) + 1)
  const common = [...counts]
    .filter(([, count]) => count >= LEAST)
    .sort(([one, left], [other, right]) => right - left || (one < other ? -1 : 1))
  const places = common.slice(0, MOST_PLACES).map(([place]) => place)
  const at: (readonly [place: string, accepted: NumberRange | 'any'])[] = []
  for (const place of places.toSorted()) {
    yield
    const values = read.map((numbers) => numbers.flatMap((number) => (number.place === place ? [number.value] : [])))
    at.push([place, isOfName(place) ? 'any' : (spanOf(values) ?? 'any')])
  }
  const rest = read.map((numbers) => numbers.flatMap(({ place, value }) => (places.includes(place) ? [] : [value])))
  const others = rest.every((values) => values.length === 0) ? 'none' : (spanOf(rest) ?? 'any')
  return others === 'any' && at.every(([, accepted]) => accepted === 'any') ? null : { path, at, others }
}

/** Numbers that are read for spans. */
const MOST_READ = 256
/** Spans that nothing asks about, and the letters of their paths: each is a line of code. */
const MOST_FIELDS = 64
const MOST_LETTERS = 2000

type OfPath = (path: ContextPath) => boolean

/**
 * The spans of numbers of the events, also those inside of other fields: of all that are asked
 * about, and of the first others that all of the events have. `isWanted`: the paths of which spans
 * are read.
 */
export function* fieldSpansOf(episodes: readonly Episode[], isAsked: OfPath, isWanted: OfPath = () => true): Steps<FieldSpan[]> {
  const spans: FieldSpan[] = []
  let [others, letters] = [0, 0]
  for (const path of numberPathsIn(episodes, isAsked).slice(0, MOST_READ).filter(isWanted)) {
    yield
    const found = numbersAt(episodes, path)
    if (!found || (found.missing > 0 && !isAsked(path))) continue
    // A value that is not a number would count as 0 where it is asked about.
    const span = spanOf(found.values) ?? (isAsked(path) ? ANY_NUMBER : null)
    if (!span) continue
    if (!isAsked(path)) {
      others += 1
      letters += pathKey(path).length
      if (others > MOST_FIELDS || letters > MOST_LETTERS) break
    }
    spans.push({ path, span, optional: mayMiss(found.missing, episodes.length) })
  }
  return spans
}

/** Events that are read for numbers that some do not have. */
const MOST_SAMPLED = 20
/** Decisions without a number from which it may be missing, or so large a share of them. */
const LEAST_MISSING = 3
const SHARE_MISSING = 0.05
const mayMiss = (missing: number, of: number): boolean => missing >= LEAST_MISSING || missing > of * SHARE_MISSING

/** The span of a number without a stable range. */
export const ANY_NUMBER: NumberRange = [-Infinity, Infinity]

/** Paths that are asked about come first, then fields of the event itself. */
function numberPathsIn(episodes: readonly Episode[], isAsked: OfPath): ContextPath[] {
  const found = new Map<string, ContextPath>()
  const step = Math.ceil(episodes.length / MOST_SAMPLED)
  const sampled = episodes.filter((_, index) => index % step === 0)
  for (const [index, { saw }] of sampled.entries()) {
    const leaves = leavesOf(saw)
    for (const { path, value } of [...leaves.leaves, ...readingsOf(saw, leaves)]) {
      const isWanted = isReading(path) ? isAsked(path) : path[0] === 'event' && (index === 0 || isAsked(path))
      if (typeof value === 'number' && isWanted) found.set(pathKey(path), path)
    }
  }
  return [...found.values()].sort(
    (one, other) => Number(isAsked(other)) - Number(isAsked(one)) || one.length - other.length || (pathKey(one) < pathKey(other) ? -1 : 1),
  )
}

/**
 * The numbers there, and how many events have none. Null if no event has one, or if too many have
 * another value to be exceptions.
 */
function numbersAt(episodes: readonly Episode[], path: ContextPath): { values: number[][]; missing: number } | null {
  const values: number[][] = []
  const others: unknown[] = []
  for (const { saw } of episodes) {
    const value = valueAt(saw, path)
    if (typeof value === 'number') values.push([value])
    else others.push(valueAt(saw, sourceOf(path)))
  }
  const canMiss = !isReading(path) || path[0] === 'amount'
  const isKnown = others.length < LEAST_MISSING || (canMiss && others.every((value) => value === undefined || value === null))
  return values.length > 0 && isKnown ? { values, missing: others.length } : null
}

/** Null if there are few values, or if the ranges of older episodes do not hold for newer ones. */
export function spanOf(read: readonly (readonly number[])[]): NumberRange | null {
  const cut = Math.floor(read.length * OLDER)
  const older = read.slice(0, cut).flat()
  const newer = read.slice(cut).flat()
  const all = [...older, ...newer]
  if (all.length < LEAST || older.length === 0) return null
  const [low, high] = widened(older)
  const missed = newer.filter((value) => value < low || value > high).length
  return missed > newer.length * MOST_MISSED ? null : widened(all)
}

/** Numbers without a span may be beyond all others by as much as these differ. */
export function farSpanOf(values: readonly number[]): NumberRange | null {
  if (values.length === 0) return null
  const [low, high] = rangeOf(values)
  const width = high - low
  return [rounded(low - width, width), rounded(high + width, width)]
}

const rangeOf = (values: readonly number[]): NumberRange => [
  values.reduce((least, value) => Math.min(least, value), Infinity),
  values.reduce((most, value) => Math.max(most, value), -Infinity),
]

/** A range includes no zero where no value was zero: a refund of nothing is another case. */
function widened(values: readonly number[]): NumberRange {
  const [low, high] = rangeOf(values)
  const width = high - low
  const gap = (width * GAPS) / values.length
  const [least, most] = [rounded(low - gap, gap), rounded(high + gap, gap)]
  return [low > 0 && least <= 0 ? low : least, high < 0 && most >= 0 ? high : most]
}

/** So many digits name a number in full. */
const ALL_DIGITS = 17

/**
 * To six digits, or more where values are large and close: the number moves by less than a
 * tenth of `gap`, so that a range still holds all that it was made of.
 */
function rounded(value: number, gap: number): number {
  for (let digits = 6; digits < ALL_DIGITS; digits += 1) {
    const short = Number(value.toPrecision(digits))
    if (short === value || Math.abs(short - value) * 10 < gap) return short
  }
  return value
}
