import { byteLength } from './byte-length.ts'
import { limits } from './limits.ts'

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
