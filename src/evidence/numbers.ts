import { foldCase, foldCaseSource } from '../base/fold-case.ts'

/**
 * A number in a text. `place`: the word before it, with a mark for each number in between. All
 * numbers of a name, such as `INV-2025-0017`, have its word with a hyphen as their place.
 */
export type NumberReading = { place: string; value: number }

/** Longer texts are read up to here. */
const LONGEST_TEXT = 2000
const MOST_NUMBERS = 64

/**
 * The numbers of a text with their places. Dates, times and addresses are left out: they name a
 * moment or a machine, and the next one is always new.
 */
export function numbersIn(text: string): NumberReading[] {
  const found: NumberReading[] = []
  let place = '^'
  const plain = foldCase(text.slice(0, LONGEST_TEXT)).replaceAll(DATE, ' ')
  for (const [token] of plain.matchAll(TOKEN)) {
    if (!/^\d/.test(token)) {
      const [word = ''] = token.split(/[-_/]?\d/)
      place = word.slice(0, LONGEST_PLACE)
      const named = token === word ? [] : (token.match(/\d+/g) ?? [])
      for (const digits of named.slice(0, MOST_NUMBERS - found.length)) found.push({ place: `${place}-`, value: Number(digits) })
      if (named.length > 0) place += '-#'
    } else {
      const value = numberOf(token)
      const names = value === null || (MONTH.test(place) && (value < 32 || (value > 1900 && value < 2100)))
      if (!names && found.length < MOST_NUMBERS) found.push({ place, value })
      if (place.length < LONGEST_PLACE) place += '#'
    }
  }
  return found
}

const LONGEST_PLACE = 40
const DATE = /\d{4}-\d\d-\d\d(?:t[\d:.]+z?)?|(?<![\d.])\d{1,2}[./]\d{1,2}[./]\d{2,4}(?![\d.])/g
/**
 * A number, a word, or the name of a thing: a word with several numbers, or one of seven digits.
 * The parts of a name are parts of no measure.
 */
const TOKEN = /\d+(?:[.,:]\d+)*|[^\s\d!-@[-`{-~]+(?:(?:[-_/]\d+){2,}|\d+(?:[-_/]\d+)+|[-_/]\d{7,})(?![.,:]?\d)|[^\s\d!-@[-`{-~]+/g
/** True for the place of the numbers of names, of which the next one is always new. */
export const isOfName = (place: string): boolean => place.endsWith('-')
const MONTH = /^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*#*$/

/** `1,250` and `1.250` are thousands, `12.5` is not; null for a time or an address. */
function numberOf(token: string): number | null {
  const groups = token.split(/[.,]/)
  const last = groups.at(-1) ?? ''
  const whole = groups.length > 1 && last.length === 3 ? groups : groups.slice(0, -1)
  if (token.includes(':') || groups.length > 3 || whole.slice(1).some((group) => group.length !== 3)) return null
  if (groups.length === 1 || whole === groups) return Number(groups.join(''))
  return Number(`${whole.join('')}.${last}`)
}

/** The same functions in learned code. */
export const NUMBERS_SOURCE = `// The numbers of a text, each with the word before it; not those of dates, times and addresses.
function numbersIn(text) {
  const found = []
  if (typeof text !== 'string') return found
  let place = '^'
  const plain = ${foldCaseSource(`text.slice(0, ${LONGEST_TEXT})`)}.replace(${String(DATE)}, ' ')
  for (const [token] of plain.matchAll(${String(TOKEN)})) {
    if (!/^\\d/.test(token)) {
      const word = token.split(/[-_/]?\\d/)[0]
      place = word.slice(0, ${LONGEST_PLACE})
      const named = token === word ? [] : token.match(/\\d+/g) || []
      for (const digits of named.slice(0, ${MOST_NUMBERS} - found.length)) found.push({ place: place + '-', value: Number(digits) })
      if (named.length > 0) place += '-#'
    } else {
      const value = numberOf(token)
      const names = value === null || (${String(MONTH)}.test(place) && (value < 32 || (value > 1900 && value < 2100)))
      if (!names && found.length < ${MOST_NUMBERS}) found.push({ place, value })
      if (place.length < ${LONGEST_PLACE}) place += '#'
    }
  }
  return found
}

function numberOf(token) {
  const groups = token.split(/[.,]/)
  const last = groups[groups.length - 1]
  const whole = groups.length > 1 && last.length === 3 ? groups : groups.slice(0, -1)
  if (token.includes(':') || groups.length > 3 || whole.slice(1).some((group) => group.length !== 3)) return null
  if (groups.length === 1 || whole === groups) return Number(groups.join(''))
  return Number(\`\${whole.join('')}.\${last}\`)
}`
