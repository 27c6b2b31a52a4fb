import { textHash } from './hash.ts'

/** Lines of one prompt that are looked at, and texts of an event that are looked for in them. */
const MOST_LINES = 500
const MOST_TEXTS = 200
const LEAST_TEXT = 6
const MONTHS =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?'
/** Dates, times, ids, and objects as JSON. Other numbers may be part of an instruction. */
const VARIES = [
  /\{\s*"[^"]*"\s*:.*\}/g,
  /\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?/g,
  /\b(?=[\da-f-]*\d)[\da-f]+(?:-[\da-f]+){2,}\b|\b(?=[\da-f]*\d)[\da-f]{8,}\b/gi,
  /\b\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?\b/gi,
  new RegExp(`\\b(?:\\d{1,2}\\.? )?(?:${MONTHS})\\b\\.?(?: \\d{1,2}(?:st|nd|rd|th)?\\b)?`, 'gi'),
  /\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b/gi,
  /\b20\d\d\b|\b\d{5,}\b/g,
]

/** Hashes of lines without dates, times, ids and JSON; not of those that quote `data`. */
export function linesOf(text: string, data: readonly string[]): string[] {
  const quoted = data.filter(({ length }) => length >= LEAST_TEXT).slice(0, MOST_TEXTS)
  return text
    .split('\n', MOST_LINES)
    .filter((line) => line.trim() !== '' && !quoted.some((part) => line.includes(part)))
    .map((line) => textHash(VARIES.reduce((left, pattern) => left.replaceAll(pattern, '#'), line.trim())))
}
