import { limits } from './limits.ts'

const encoder = new TextEncoder()
// oxlint-disable-next-line no-control-regex -- U+0000 is one byte, too
const NON_ASCII = /[^\u0000-\u007f]/

/** Size of a text in UTF-8, the platform's measure. A lone surrogate counts as U+FFFD (3 bytes). */
export function byteLength(text: string): number {
  return NON_ASCII.test(text) ? encoder.encode(text).byteLength : text.length
}

/** `byteLength(text) <= bytes`, but counts only if the number of UTF-16 units is not decisive. */
export function fitsBytes(text: string, bytes: number): boolean {
  return text.length <= bytes && (text.length * 3 <= bytes || byteLength(text) <= bytes)
}

/** Joins JSON texts into arrays of at most `most` bytes. A larger text gets its own array. */
export function jsonChunks(texts: readonly string[], most: number = limits.sql_json_bytes): string[] {
  const chunks: string[] = []
  let chunk: string[] = []
  // Two brackets, and one comma fewer than texts.
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
