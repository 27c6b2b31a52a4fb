import { byteLength } from './byte-length.ts'
import { limits } from './limits.ts'

/**
 * Joins JSON texts into JSON arrays of at most `most` bytes in UTF-8, so that each is one SQL
 * parameter or message. A text larger than that gets its own array.
 */
export function jsonChunks(texts: readonly string[], most: number = limits.sql_json_bytes): string[] {
  return byteChunks(texts, (text) => byteLength(text) + SEPARATOR, most - SEPARATOR).map((chunk) => `[${chunk.join(',')}]`)
}

/** A comma; the brackets take two bytes for one comma less. */
const SEPARATOR = 1

/**
 * Splits a list into runs whose sizes add up to at most `most`. An item larger than that gets a run
 * of its own.
 */
export function byteChunks<Item>(items: readonly Item[], sizeOf: (item: Item) => number, most: number = limits.sql_json_bytes): Item[][] {
  const chunks: Item[][] = []
  let chunk: Item[] = []
  let size = 0
  for (const item of items) {
    const bytes = sizeOf(item)
    if (chunk.length > 0 && size + bytes > most) {
      chunks.push(chunk)
      chunk = []
      size = 0
    }
    chunk.push(item)
    size += bytes
  }
  if (chunk.length > 0) chunks.push(chunk)
  return chunks
}
