import type { Steps } from '../../../../base/steps.ts'
import type { Saw } from '../../episode.ts'
import { type ContextPath, pathKey, REPEATS, valueAt } from '../facts/condition.ts'
import { leavesOf, readingsOf } from '../facts/facts.ts'
import { dayOf } from '../facts/readings.ts'
import { repeatsOf } from '../facts/repeats.ts'

/** A value of a context that trees may ask about. */
export type NumberSource =
  | { is: 'number' | 'category' | 'hour'; path: ContextPath }
  | { is: 'ratio' | 'difference'; path: ContextPath; other: ContextPath }
export type CategoryValue = string | boolean | null
/**
 * `at`: the thresholds of a number, ascending, or the values of a category, by their order. The
 * bin of a value is 0 if it is missing; else 1 and the thresholds that it reaches, or 1 and the
 * place of the value, where values that are not listed share the last bin.
 */
export type TreeColumn = { source: NumberSource; at: readonly number[] | readonly CategoryValue[] }

export const MOST_BINS = 64
const MOST_COLUMNS = 160
const MOST_PATHS = 300
/** Thresholds of all columns: they stand in the code. */
const MOST_THRESHOLDS = 2400
const LEAST_THRESHOLDS = 15
/** Values that come more rarely are like any other. */
const LEAST_OF_VALUE = 5
const LEAST_OF_COLUMN = 10
const LONGEST_VALUE = 64
/** Share of the texts that the listed values of a category must have. */
const LISTED = 0.5
/** A number of which more newer values are outside of the older ones' range counts or names. */
const OLDER = 0.7
const MOST_OUTSIDE = 0.5
/** Episodes of one step. */
const STEP = 50
export const HOUR = /^\d{4}-\d\d-\d\d[T ](\d\d):\d\d/

/** The part of a context that a number or a category has; undefined: missing. */
export function partOf(source: NumberSource, saw: Saw): number | CategoryValue | undefined {
  if (source.is === 'ratio' || source.is === 'difference')
    return combined(source.is, numberAt(source.path, saw), numberAt(source.other, saw))
  if (source.is === 'number') return numberAt(source.path, saw)
  const value = valueAt(saw, source.path)
  if (source.is === 'hour') return hourIn(value)
  return typeof value === 'string' || typeof value === 'boolean' || value === null ? value : undefined
}

/** The part of each context. */
export function* partsOf(source: NumberSource, saws: readonly Saw[]): Steps<Taught['parts']> {
  const parts: Taught['parts'] = []
  for (const [index, saw] of saws.entries()) {
    if (index % STEP === 0) yield
    parts.push(partOf(source, saw))
  }
  return parts
}

function numberAt(path: ContextPath, saw: Saw): number | undefined {
  const value = path[0] === REPEATS ? repeatsIn(path[1] ?? '', saw) : valueAt(saw, path)
  return typeof value === 'number' ? value : undefined
}

/** The repeats of one field: each costs a search in the recent events. */
function repeatsIn(name: string, saw: Saw): unknown {
  const { id, type, source, timestamp, scope, meta } = saw.event
  return repeatsOf({ ...saw, event: { id, type, source, timestamp, scope, meta, [name]: saw.event[name] } }).find(
    ({ path }) => path[1] === name,
  )?.value
}

function combined(is: 'ratio' | 'difference', one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return undefined
  if (is === 'difference') return one - other
  return other === 0 ? undefined : one / other
}

function hourIn(value: unknown): number | undefined {
  const hour = typeof value === 'string' ? HOUR.exec(value)?.[1] : undefined
  return hour === undefined ? undefined : Number(hour)
}

export const isCategory = ({ source }: Pick<TreeColumn, 'source'>): boolean => source.is === 'category'

/** The bin of a part; see `TreeColumn`. */
export function binOf({ at }: TreeColumn, part: number | CategoryValue | undefined): number {
  if (part === undefined) return 0
  if (typeof part !== 'number') {
    const place = (at as readonly CategoryValue[]).indexOf(part)
    return 1 + (place < 0 ? at.length : place)
  }
  let low = 0
  let high = at.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (part >= (at[middle] as number)) low = middle + 1
    else high = middle
  }
  return low + 1
}

/** A part of each context that was taught, in time order. */
type Taught = { source: NumberSource; parts: (number | CategoryValue | undefined)[]; known: number }

/** The columns that the contexts have, with bins of about as many values each. */
export function* columnsOf(saws: readonly Saw[]): Steps<TreeColumn[]> {
  const found = [...(yield* taughtIn(saws)).values()].filter(({ known }) => known >= LEAST_OF_COLUMN)
  found.sort((one, other) => other.known - one.known || (keyOf(one.source) < keyOf(other.source) ? -1 : 1))
  const most = Math.max(LEAST_THRESHOLDS, Math.min(MOST_BINS - 2, Math.floor(MOST_THRESHOLDS / Math.max(1, found.length))))
  const columns: TreeColumn[] = []
  for (const taught of found) {
    yield
    const column = columnOf(taught, most)
    if (column !== null) columns.push(column)
    if (columns.length === MOST_COLUMNS) break
  }
  return columns
}

/** The ratios and the differences of numbers, two by two. */
export function* pairsOf(saws: readonly Saw[], paths: readonly ContextPath[], most: number): Steps<TreeColumn[]> {
  const columns: TreeColumn[] = []
  for (const [index, path] of paths.entries())
    for (const other of paths.slice(index + 1))
      for (const is of ['ratio', 'difference'] as const) {
        const source = { is, path, other }
        const parts = yield* partsOf(source, saws)
        yield
        const column = columnOf({ source, parts, known: parts.filter((part) => part !== undefined).length }, most)
        if (column !== null) columns.push(column)
      }
  return columns
}

export const keyOf = (source: NumberSource): string =>
  `${source.is} ${pathKey(source.path)}${'other' in source ? pathKey(source.other) : ''}`

function* taughtIn(saws: readonly Saw[]): Steps<Map<string, Taught>> {
  const found = new Map<string, Taught>()
  const add = (source: NumberSource, index: number, part: number | CategoryValue): void => {
    const key = keyOf(source)
    let known = found.get(key)
    if (known === undefined) {
      if (found.size >= MOST_PATHS) return
      found.set(key, (known = { source, parts: saws.map(() => undefined), known: 0 }))
    }
    known.parts[index] = part
    known.known += 1
  }
  for (const [index, saw] of saws.entries()) {
    if (index % STEP === 0) yield
    const leaves = leavesOf(saw)
    for (const { path, value } of [...leaves.leaves, ...readingsOf(saw, leaves), ...repeatsOf(saw)]) {
      if (typeof value === 'number') add({ is: 'number', path }, index, value)
      else {
        const hour = hourIn(value)
        if (hour !== undefined) add({ is: 'hour', path }, index, hour)
        if (dayOf(value) === undefined && (typeof value !== 'string' || value.length <= LONGEST_VALUE))
          add({ is: 'category', path }, index, value)
      }
    }
  }
  return found
}

function columnOf({ source, parts, known }: Taught, most: number): TreeColumn | null {
  if (source.is === 'category') {
    const values = valuesOf(parts, known)
    return values !== null && (values.length > 1 || known < parts.length) ? { source, at: values } : null
  }
  const numbers = parts.filter((part) => typeof part === 'number')
  if (isCounter(numbers)) return null
  const at = thresholdsOf(numbers, most)
  return at.length > 0 || known < parts.length ? { source, at } : null
}

/** The values by their frequency. Null: the texts are too different to be a category. */
function valuesOf(parts: Taught['parts'], known: number): CategoryValue[] | null {
  const counts = new Map<CategoryValue, number>()
  for (const part of parts) if (part !== undefined && typeof part !== 'number') counts.set(part, (counts.get(part) ?? 0) + 1)
  const frequent = [...counts].filter(([, count]) => count >= LEAST_OF_VALUE)
  frequent.sort(([one, left], [other, right]) => right - left || (String(one) < String(other) ? -1 : 1))
  const listed = frequent.slice(0, MOST_BINS - 2)
  const share = listed.reduce((sum, [, count]) => sum + count, 0) / known
  return share >= LISTED ? listed.map(([value]) => value) : null
}

function isCounter(numbers: readonly number[]): boolean {
  const cut = Math.floor(numbers.length * OLDER)
  let low = Infinity
  let high = -Infinity
  for (const value of numbers.slice(0, cut)) {
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  const newer = numbers.slice(cut)
  return newer.filter((value) => value < low || value > high).length > newer.length * MOST_OUTSIDE
}

/** Thresholds between values, so that about as many values are between each two. */
function thresholdsOf(numbers: readonly number[], most: number): number[] {
  const sorted = numbers.toSorted((one, other) => one - other)
  const distinct = sorted.filter((value, index) => index === 0 || value !== sorted[index - 1])
  const thresholds: number[] = []
  if (distinct.length <= most + 1) {
    for (let at = 1; at < distinct.length; at += 1) thresholds.push(between(distinct[at - 1] as number, distinct[at] as number))
    return thresholds
  }
  let last = sorted[0] as number
  for (let step = 1; step <= most; step += 1) {
    const place = Math.floor((sorted.length * step) / (most + 1))
    const value = sorted[place] as number
    if (value === last) continue
    let before = place
    while (before > 0 && sorted[before] === value) before -= 1
    thresholds.push(between(sorted[before] as number, value))
    last = value
  }
  return thresholds
}

/** The shortest number above `low` and at most `high`, near their middle. */
export function between(low: number, high: number): number {
  const middle = low + (high - low) / 2
  for (let digits = 1; digits <= 15; digits += 1) {
    const value = Number(middle.toPrecision(digits))
    if (value > low && value <= high) return value
  }
  return high
}
