import type { Saw } from '../../episode.ts'
import { isJsonFields } from '../../../../base/json.ts'
import { quote } from './text.ts'

/**
 * The readings of values of a context, by the first names of their paths. `amount`, PATH: the
 * number that a text says. `day`, PATH: the day of a date. `sum`, `most` and `least`, PATH, NAME:
 * of a number of all items of a list. `before`: the type of the last event of another type.
 * `earlier`, COUNT, KEY, PATH: of the last event of the same type that says the same at KEY, which
 * has COUNT names; of the last one of the type if KEY has none.
 */
export const READINGS = ['amount', 'day', 'sum', 'most', 'least', 'before', 'earlier'] as const
type Reading = (typeof READINGS)[number]
type Path = readonly string[]

const isReadingName = (name: string | undefined): name is Reading => (READINGS as readonly (string | undefined)[]).includes(name)
export const isReading = ([first]: Path): boolean => isReadingName(first)
/** The path of the value from which the number of a path is read. */
export const sourceOf = (path: Path): Path => (path[0] === 'amount' ? path.slice(1) : path)

export const MOST_ITEMS = 256
/** Decimal places of a sum: sums of binary fractions differ after them. */
export const SUM_PLACES = 9
const LONGEST_AMOUNT = 32
const TIME = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/
/** The decimal places after a point, or one or two after a comma; thousands apart; then a unit. */
const AMOUNT =
  /^\s*(?:[A-Z]{3}\s|[A-Z]{0,2}[$£€]\s?)?(?:([+-]?(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:[,'’]\d{3}){1,4})(?:\.\d{1,9})?)|([+-]?(?:0|[1-9]\d{0,14}|[1-9]\d{0,2}(?:[.\s'’]\d{3}){1,4}),\d\d?))\s?(?:[%€°]|°?[A-Za-z]{1,8}(?:\/[A-Za-z]{1,3})?)?\s*$/
const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d{1,9})?))?(?:Z|([+-])(\d\d):?(\d\d))?)?$/

/** The value at a path of anything, such as an output. */
export function partAt(root: unknown, path: Path): unknown {
  let value = root
  for (const name of path) value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
  return value
}

/** The value of a reading; undefined if it finds nothing. */
export function readingAt([first, ...path]: Path, saw: unknown): unknown {
  if (!isReadingName(first)) return undefined
  const at = (inner: Path): unknown => partAt(saw, inner)
  if (first === 'before') return typeBefore(at(['event']), at(['recent_events']))
  if (first === EARLIER) return earlierAt(saw as Saw, keyIn(path))
  if (first === 'amount') return amountIn(at(path))
  if (first === 'day') return dayOf(at(path))
  const numbers = numbersOf(at(path.slice(0, -1)), path.at(-1) ?? '')
  return numbers.length === 0 ? undefined : ofNumbers(first, numbers)
}

export const OF_ITEMS = ['sum', 'most', 'least'] as const

function ofNumbers(of: (typeof OF_ITEMS)[number], numbers: readonly number[]): number {
  if (of === 'sum') return Number(numbers.reduce((sum, one) => sum + one, 0).toFixed(SUM_PLACES))
  return numbers.reduce((found, one) => (of === 'most' ? Math.max(found, one) : Math.min(found, one)))
}

/** A number as it is: a field may have both. The hours of a time of day. */
export function amountIn(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  const time = typeof value === 'string' ? TIME.exec(value) : null
  if (time) return Number(time[1]) + Number(time[2]) / 60 + Number(time[3] ?? 0) / 3600
  const found = typeof value === 'string' && value.length <= LONGEST_AMOUNT ? AMOUNT.exec(value) : null
  if (found?.[1] !== undefined) return Number(found[1].replaceAll(/[,'’]/g, ''))
  return found?.[2] === undefined ? undefined : Number(found[2].replaceAll(/[^\d,+-]/g, '').replace(',', '.'))
}

/** Days since 1970, with the part of the day. Without a zone it is in UTC. */
export function dayOf(text: unknown): number | undefined {
  const found = typeof text === 'string' ? DATE.exec(text) : null
  if (found === null) return undefined
  const [year = 0, month = 0, day = 0] = found.slice(1, 4).map(Number)
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined
  const years = month > 2 ? year : year - 1
  const before = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const days = years * 365 + Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400) + before - 719_468
  const [hours = 0, minutes = 0, seconds = 0] = found.slice(4, 7).map((part) => Number(part ?? 0))
  const [ahead = 0, more = 0] = found.slice(8, 10).map((part) => Number(part ?? 0))
  const offset = (found[7] === '-' ? -1 : 1) * (ahead * 60 + more)
  return days + (hours * 3600 + (minutes - offset) * 60 + seconds) / 86_400
}

/** None if an item has none, or if the list is too long: a sum of some items is another number. */
function numbersOf(list: unknown, name: string): number[] {
  if (!Array.isArray(list) || list.length > MOST_ITEMS) return []
  const values = list.map((item: unknown) => (isJsonFields(item) ? item[name] : undefined))
  return values.every((value) => typeof value === 'number') ? values : []
}

function typeBefore(event: unknown, recent: unknown): string | undefined {
  const { type } = event as Saw['event']
  return (recent as Saw['recent_events']).findLast((other) => other.type !== type)?.type
}

/** The first name of a path into an earlier event. */
export const EARLIER = 'earlier'
const LONGEST_KEY = 64
type Earlier = { key: Path; path: Path }

export const earlierPath = ({ key, path }: Earlier): Path => [EARLIER, String(key.length), ...key, ...path]
export const keyIn = ([count, ...names]: Path): Earlier => ({ key: names.slice(0, Number(count)), path: names.slice(Number(count)) })

function earlierAt({ event, recent_events }: Saw, { key, path }: Earlier): unknown {
  const said = partAt(event, key)
  if (key.length > 0 && !(typeof said === 'string' && said.length <= LONGEST_KEY)) return undefined
  const isLike = (other: Saw['event']): boolean =>
    other.id !== event.id && other.type === event.type && (key.length === 0 || partAt(other, key) === said)
  return partAt(recent_events.findLast(isLike), path)
}

/** A reading in code. `codeOf`: the value at a path. */
export function readingCode([first, ...path]: Path, codeOf: (path: Path) => string): string {
  if (first === 'before') return 'typeBefore(context)'
  if (first === EARLIER) {
    const { key, path: names } = keyIn(path)
    return `earlier(context, [${key.map(quote).join(', ')}], [${names.map(quote).join(', ')}])`
  }
  if (first === 'amount') return `amountIn(${codeOf(path)})`
  if (first === 'day') return `dayOf(${codeOf(path)})`
  return `${first}Of(${codeOf(path.slice(0, -1))}, ${quote(path.at(-1) ?? '')})`
}

const ITEMS_SOURCE = `// The numbers of all items of a list; none if an item has none.
function numbersOf(list, name) {
  if (!Array.isArray(list) || list.length > ${MOST_ITEMS}) return []
  const values = list.map((item) => (typeof item === 'object' && item !== null && !Array.isArray(item) ? item[name] : undefined))
  return values.every((value) => typeof value === 'number') ? values : []
}
const ofSome = (numbers, of) => (numbers.length === 0 ? undefined : of(numbers))
const sumOf = (list, name) => ofSome(numbersOf(list, name), (all) => Number(all.reduce((sum, one) => sum + one, 0).toFixed(${SUM_PLACES})))
const mostOf = (list, name) => ofSome(numbersOf(list, name), (all) => all.reduce((most, one) => Math.max(most, one)))
const leastOf = (list, name) => ofSome(numbersOf(list, name), (all) => all.reduce((least, one) => Math.min(least, one)))`

const SOURCES: readonly (readonly [calls: RegExp, source: string])[] = [
  [
    /\bamountIn\(/,
    `// The number that a text says, such as '12.50 EUR'; the hours of a time, such as '22:15'.
function amountIn(value) {
  if (typeof value === 'number') return value
  const time = typeof value === 'string' ? ${String(TIME)}.exec(value) : null
  if (time) return Number(time[1]) + Number(time[2]) / 60 + Number(time[3] ?? 0) / 3600
  const found = typeof value === 'string' && value.length <= ${LONGEST_AMOUNT} ? ${String(AMOUNT)}.exec(value) : null
  if (found?.[1] !== undefined) return Number(found[1].replace(/[,'’]/g, ''))
  return found?.[2] === undefined ? undefined : Number(found[2].replace(/[^\\d,+-]/g, '').replace(',', '.'))
}`,
  ],
  [
    /\bdayOf\(/,
    `// Days since 1970, with the part of the day.
function dayOf(text) {
  const found = typeof text === 'string' ? ${String(DATE)}.exec(text) : null
  if (found === null) return undefined
  const [year, month, day] = found.slice(1, 4).map(Number)
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined
  const years = month > 2 ? year : year - 1
  const before = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const days = years * 365 + Math.floor(years / 4) - Math.floor(years / 100) + Math.floor(years / 400) + before - 719468
  const [hours, minutes, seconds] = found.slice(4, 7).map((part) => Number(part ?? 0))
  const [ahead, more] = found.slice(8, 10).map((part) => Number(part ?? 0))
  const offset = (found[7] === '-' ? -1 : 1) * (ahead * 60 + more)
  return days + (hours * 3600 + (minutes - offset) * 60 + seconds) / 86400
}`,
  ],
  [/\b(?:sum|most|least)Of\(/, ITEMS_SOURCE],
  [
    /\btypeBefore\(/,
    `// The type of the last event of another type.
const typeBefore = ({ event, recent_events }) => recent_events.filter((other) => other.type !== event.type).pop()?.type`,
  ],
  [
    /\bearlier\(/,
    `// What the last event of the same type has there, of those that say the same.
function earlier({ event, recent_events }, key, path) {
  const at = (one, names) => names.reduce((value, name) => (typeof value === 'object' && value !== null ? value[name] : undefined), one)
  const said = at(event, key)
  if (key.length > 0 && !(typeof said === 'string' && said.length <= ${LONGEST_KEY})) return undefined
  const isLike = (other) => other.id !== event.id && other.type === event.type && (key.length === 0 || at(other, key) === said)
  return at(recent_events.filter(isLike).pop(), path)
}`,
  ],
]

/** The functions that code calls for its readings. */
export const readingSources = (code: string): string[] => SOURCES.flatMap(([calls, source]) => (calls.test(code) ? [source] : []))
