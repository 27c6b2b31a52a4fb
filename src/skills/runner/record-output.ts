import { checkJson } from '../../base/check-json.ts'
import { sha256 } from '../../base/hash.ts'
import type { Json } from '../../base/json.ts'
import type { RecordedOutput } from './ports.ts'

export const OUTPUT_BYTES = 1024 * 1024

/** What a tool gave, as JSON; null where it cannot be written as such. */
export async function recordOutput(output: unknown): Promise<RecordedOutput | null> {
  const text = jsonText(output)
  if (text === null) return null
  const bytes = new TextEncoder().encode(text)
  if (bytes.length > OUTPUT_BYTES) return { kind: 'too_large', sha256: await sha256(text), bytes: bytes.length }
  const value = JSON.parse(text) as Json
  return checkJson(value).ok ? { kind: 'json', value } : null
}

function jsonText(output: unknown): string | null {
  try {
    return JSON.stringify(output ?? null) ?? null
  } catch {
    return null
  }
}
