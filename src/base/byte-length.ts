import { limits } from './limits.ts'

const encoder = new TextEncoder()
// oxlint-disable-next-line no-control-regex -- U+0000 is one byte, too
const NON_ASCII = /[^\u0000-\u007f]/

/**
 * The bytes of a text in UTF-8, by which the platform measures SQL values, queue messages and RPC
 * answers. A half of a surrogate pair counts as the U+FFFD (3 bytes) that is written in its place.
 */
export function byteLength(text: string): number {
  return NON_ASCII.test(text) ? encoder.encode(text).byteLength : text.length
}

/**
 * Same as `byteLength(text) <= bytes`, but counts only where the number of UTF-16 units (1 to 3
 * bytes each) does not answer it.
 */
export function fitsBytes(text: string, bytes: number): boolean {
  return text.length <= bytes && (text.length * 3 <= bytes || byteLength(text) <= bytes)
}

/**
 * Joins JSON texts into JSON arrays of at most `most` bytes in UTF-8, so that each is one SQL
 * parameter or message. A text larger than that gets its own array.
 */
export function jsonChunks(texts: readonly string[], most: number = limits.sql_json_bytes): string[] {
  const chunks: string[] = []
  let chunk: string[] = []
  // The brackets, for one comma less than there are texts.
  let size = 1
  for (const text of texts) {
    const bytes = byteLength(text) + 1
    if (chunk.length > 0 && size + bytes > most) {
      chunks.push(`[${chunk.join(',')}]`)
      chunk = []
      size = 1
    }
    chunk.push(text)
    size += bytes
  }
  if (chunk.length > 0) chunks.push(`[${chunk.join(',')}]`)
  return chunks
}
