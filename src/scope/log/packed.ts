import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** Text as a row keeps it: compressed, unless it is short. */
export type Packed = string | ArrayBuffer

const SHORT = 1000

/** Entries repeat the events that they are about, so that a fifth to a twentieth remains. */
export function pack(text: string): Packed {
  if (text.length < SHORT) return text
  const { buffer, byteOffset, byteLength } = deflateRawSync(text, { level: 1 })
  return buffer.slice(byteOffset, byteOffset + byteLength)
}

export const unpack = (packed: Packed): string => (typeof packed === 'string' ? packed : inflateRawSync(packed).toString())

/** An entry that a row will hold. `shared`: texts that other entries of the row may repeat. */
export type Line = { seq: number; text: string; shared?: readonly string[] }
/** The encoded lines of a row, and the texts that references in them stand for. */
export type Lines = { lines: readonly string[]; repeated: readonly string[] }

/** JSON text has no line breaks and no control characters, so that these need no escape. */
const SEPARATOR = ',\n'
const END = ']\n'
const REFERENCE = /\u0001(\d+)\u0002/g
const reference = (place: number): string => `\u0001${place}\u0002`

/** Only contexts repeat others: all before this text can be read without decoding. */
const CONTEXT = ',"context":{'

/** Size of a line in a row that has the texts in `seen`, to which it adds its own. */
export function encodedSize({ text, shared = [] }: Line, seen: Set<string>): number {
  let size = text.length
  for (const one of shared) {
    if (seen.has(one)) size -= one.length
    seen.add(one)
  }
  return Math.max(0, size)
}

/** A row of lines. A text that contexts repeat is stored once, after the lines. */
export function rowOf(lines: readonly Line[]): Packed {
  const repeated = repeatedIn(lines)
  const places = new Map(repeated.map((text, place) => [text, place]))
  const row = `[${lines.map((line) => encoded(line, places)).join(SEPARATOR)}]`
  return pack(repeated.length === 0 ? row : `${row}\n${repeated.join('\n')}`)
}

function repeatedIn(lines: readonly Line[]): string[] {
  const counts = new Map<string, number>()
  for (const { shared = [] } of lines) for (const one of shared) counts.set(one, (counts.get(one) ?? 0) + 1)
  return Array.from(counts, ([text, count]) => (count > 1 ? text : '')).filter((text) => text !== '')
}

function encoded({ text, shared = [] }: Line, places: ReadonlyMap<string, number>): string {
  const start = shared.length === 0 ? -1 : text.indexOf(CONTEXT)
  if (start < 0) return text
  let context = text.slice(start)
  // A long text may contain a shorter one.
  for (const one of [...new Set(shared)].toSorted((some, other) => other.length - some.length)) {
    const place = places.get(one)
    if (place !== undefined) context = context.replaceAll(one, () => reference(place))
  }
  return text.slice(0, start) + context
}

export function linesOf(entries: Packed): Lines {
  const row = unpack(entries)
  const end = row.indexOf(END)
  const repeated = end < 0 ? [] : row.slice(end + END.length).split('\n')
  return { lines: row.slice(1, end < 0 ? -1 : end).split(SEPARATOR), repeated }
}

/** The entry as it was appended. */
export const decoded = (line: string, { repeated }: Lines): string =>
  repeated.length === 0 ? line : line.replaceAll(REFERENCE, (_, place: string) => repeated[Number(place)] ?? '')
