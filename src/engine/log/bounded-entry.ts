import { createHash } from 'node:crypto'
import { byteLength, fitsBytes } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import type { LogEntry } from '../../contract/log-entry.ts'

/** Shorter fields are always kept: they identify the entry. */
const SHORT = 1000

/**
 * Limits an entry's JSON to one SQL value by replacing its largest fields with their size and hash.
 * Otherwise a failed log write would roll back the recorded change.
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

/** A string stays a string, so that the field keeps its type. */
function notLogged(value: unknown, json: string, bytes: number): unknown {
  const sha256 = createHash('sha256').update(json).digest('hex')
  return typeof value === 'string' ? `[not logged: ${bytes} bytes, sha256 ${sha256}]` : { not_logged: { bytes, sha256 } }
}
