import { pack, unpack, type PackedText } from './packed.ts'

/**
 * An entry as JSON. `start`: where its context begins, the last field. `pieces`: its text, of which
 * other contexts may repeat each second one.
 */
export type PackedLine = { seq: number; text: string; context?: { start: number; pieces: readonly string[] } }
/** The lines of a row as stored, and the texts that references in them stand for. */
export type PackedRow = { lines: readonly string[]; repeated: readonly string[] }

/**
 * JSON text holds no line breaks, tabs and form feeds: a row splits without parsing, and a
 * reference cannot be part of an entry.
 */
const SEPARATOR = ',\n'
const END = ']\n'
const CONTEXT = '\f'
const REFERENCE = /\t(\d+)\t|\f/g
const referenceTo = (place: number): string => `\t${place}\t`

const sharedIn = ({ context }: PackedLine): string[] => context?.pieces.filter((_, index) => index % 2 === 1) ?? []

/** Size of a line in a row that has the texts in `seen`, to which it adds its own. */
export function addedSize(line: PackedLine, seen: Set<string>): number {
  let size = line.text.length
  for (const one of sharedIn(line)) {
    if (seen.has(one)) size -= one.length
    else seen.add(one)
  }
  return size
}

/**
 * A row of lines. A text that contexts repeat, such as an event, is stored once, after the lines:
 * a row needs no other row to be read.
 */
export function rowOf(lines: readonly PackedLine[]): PackedText {
  const seen = new Set<string>()
  const places = new Map<string, number>()
  for (const one of lines.flatMap(sharedIn)) {
    if (!seen.has(one)) seen.add(one)
    else if (!places.has(one)) places.set(one, places.size)
  }
  const row = `[${lines.map((line) => encoded(line, places)).join(SEPARATOR)}]`
  return pack(places.size === 0 ? row : `${row}\n${[...places.keys()].join('\n')}`)
}

function encoded({ text, context }: PackedLine, places: ReadonlyMap<string, number>): string {
  if (!context) return text
  const json = context.pieces.map((piece, index) => {
    const place = index % 2 === 1 ? places.get(piece) : undefined
    return place === undefined ? piece : referenceTo(place)
  })
  return `${text.slice(0, context.start)}${CONTEXT}${json.join('')}}`
}

export function linesOf(entries: PackedText): PackedRow {
  const row = unpack(entries)
  const end = row.indexOf(END)
  const repeated = end < 0 ? [] : row.slice(end + END.length).split('\n')
  return { lines: row.slice(1, end < 0 ? -1 : end).split(SEPARATOR), repeated }
}

/** The entry as it was appended. */
export const decoded = (line: string, { repeated }: PackedRow): string =>
  line.includes(CONTEXT)
    ? line.replaceAll(REFERENCE, (_, place?: string) => (place === undefined ? '' : (repeated[Number(place)] ?? '')))
    : line

/** The entry, with null as its context if that can be cut off without decoding. */
export function withoutContext(line: string, row: PackedRow): string {
  const start = line.indexOf(CONTEXT)
  return start < 0 ? decoded(line, row) : `${line.slice(0, start)}null}`
}
