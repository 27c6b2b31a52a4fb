import { limits } from './limits.ts'

/** Joins JSON texts into JSON arrays, each short enough to be one SQL parameter or one message (at least one text in each). */
export function jsonChunks(texts: readonly string[], most: number = limits.sql_json_bytes): string[] {
  const chunks: string[] = []
  let chunk: string[] = []
  let size = 0
  for (const text of texts) {
    // UTF-16 units, at most three bytes each: the limits leave room for that.
    if (chunk.length > 0 && size + text.length > most) {
      chunks.push(`[${chunk.join(',')}]`)
      chunk = []
      size = 0
    }
    chunk.push(text)
    size += text.length + 1
  }
  if (chunk.length > 0) chunks.push(`[${chunk.join(',')}]`)
  return chunks
}
