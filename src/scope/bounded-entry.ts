import { createHash } from 'node:crypto'
import { byteLength, fitsBytes } from '../base/byte-length.ts'
import { limits } from '../base/limits.ts'
import type { LogEntry } from '../contract/log-entry.ts'

/** Left as they are, however large the entry: they say what it is about. */
const SHORT = 1000

/**
 * An entry's JSON, small enough for one SQL value. Where it is not, the largest of its fields are
 * replaced, one by one, by their size and hash: a log that cannot be written would take back what
 * it tells of.
 */
export function boundedEntry(text: string, entry: LogEntry): string {
  if (fitsBytes(text, limits.log_entry_bytes)) return text
  const fields = Object.entries(entry).map(([name, value]) => {
    const json = JSON.stringify(value) ?? 'null'
    return { name, value, json, bytes: byteLength(json) }
  })
  const largest = fields.toSorted((one, other) => other.bytes - one.bytes)
  const kept: Record<string, unknown> = { ...entry }
  let excess = byteLength(text) - limits.log_entry_bytes
  for (const { name, value, json, bytes } of largest) {
    if (excess <= 0 || bytes <= SHORT) break
    kept[name] = notLogged(value, json, bytes)
    excess -= bytes - SHORT
  }
  return JSON.stringify(kept)
}

/** A text stays a text, so that whoever reads the field finds its type. */
function notLogged(value: unknown, json: string, bytes: number): unknown {
  const sha256 = createHash('sha256').update(json).digest('hex')
  return typeof value === 'string' ? `[not logged: ${bytes} bytes, sha256 ${sha256}]` : { not_logged: { bytes, sha256 } }
}
