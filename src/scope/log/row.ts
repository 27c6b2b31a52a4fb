import { pack, unpack, type Packed } from './packed.ts'

/** An entry as JSON. `start`: where its context begins. `shared`: texts that contexts repeat. */
export type Line = { seq: number; text: string; context?: { start: number; shared: readonly string[] } }
/** The lines of a row as stored, and the texts that references in them stand for. */
export type Row = { lines: readonly string[]; repeated: readonly string[] }

/**
 * JSON text holds no line breaks, tabs and form feeds: a row splits without parsing, and a
 * reference cannot be part of an entry.
 */
const SEPARATOR = ',\n'
const END = ']\n'
const CONTEXT = '\f'
const REFERENCE = /\t(\d+)\t|\f/g
const referenceTo = (place: number): string => `\t${place}\t`

/** Size of a line in a row that has the texts in `seen`, to which it adds its own. */
export function addedSize({ text, context }: Line, seen: Set<string>): number {
  let size = text.length
  for (const one of context?.shared ?? []) {
    if (seen.has(one)) size -= one.length
    seen.add(one)
  }
  return Math.max(0, size)
}

/**
 * A row of lines. A text that contexts repeat, such as an event, is stored once, after the lines:
 * a row needs no other row to be read.
 */
export function rowOf(lines: readonly Line[]): Packed {
  const counts = new Map<string, number>()
  for (const { context } of lines) for (const one of context?.shared ?? []) counts.set(one, (counts.get(one) ?? 0) + 1)
  const repeated = Array.from(counts.keys()).filter((text) => counts.get(text) !== 1)
  const places = new Map(repeated.map((text, place) => [text, place]))
  const row = `[${lines.map((line) => encoded(line, places)).join(SEPARATOR)}]`
  return pack(repeated.length === 0 ? row : `${row}\n${repeated.join('\n')}`)
}

function encoded({ text, context }: Line, places: ReadonlyMap<string, number>): string {
  if (!context) return text
  let json = text.slice(context.start)
  // A long text may contain a shorter one.
  for (const one of [...new Set(context.shared)].toSorted((some, other) => other.length - some.length)) {
    const place = places.get(one)
    if (place !== undefined) json = json.replaceAll(one, () => referenceTo(place))
  }
  return `${text.slice(0, context.start)}${CONTEXT}${json}`
}

export function linesOf(entries: Packed): Row {
  const row = unpack(entries)
  const end = row.indexOf(END)
  const repeated = end < 0 ? [] : row.slice(end + END.length).split('\n')
  return { lines: row.slice(1, end < 0 ? -1 : end).split(SEPARATOR), repeated }
}

/** The entry as it was appended. */
export const decoded = (line: string, { repeated }: Row): string =>
  line.includes(CONTEXT)
    ? line.replaceAll(REFERENCE, (_, place?: string) => (place === undefined ? '' : (repeated[Number(place)] ?? '')))
    : line

/** The entry, with null as its context if that can be cut off without decoding. */
export function withoutContext(line: string, row: Row): string {
  const start = line.indexOf(CONTEXT)
  return start < 0 ? decoded(line, row) : `${line.slice(0, start)}null}`
}
