import { textHash } from './hash.ts'

/** Lines of one prompt that are looked at, and texts of an event that are looked for in them. */
const MOST_LINES = 500
const MOST_TEXTS = 200
const LEAST_TEXT = 6
const MONTHS =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?'
/** The beginning of an object as JSON, which goes up to the last brace. */
const OBJECT = /\{\s*"[^"]*"\s*:/
/** Words in hexadecimal; those with a digit are ids. */
const HEX = /\b[\da-f]+(?:-[\da-f]+){2,}\b|\b[\da-f]{8,}\b/gi
/** Dates, times and ids. Other numbers may be part of an instruction. */
const VARIES = [
  /\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?/g,
  HEX,
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
    .map((line) => textHash(VARIES.reduce(masked, withoutObject(line.trim()))))
}

const masked = (line: string, pattern: RegExp): string =>
  line.replaceAll(pattern, (found) => (pattern === HEX && !/\d/.test(found) ? found : '#'))

function withoutObject(line: string): string {
  const begins = OBJECT.exec(line)
  const end = line.lastIndexOf('}')
  if (!begins || end < begins.index + begins[0].length) return line
  return `${line.slice(0, begins.index)}#${line.slice(end + 1)}`
}
