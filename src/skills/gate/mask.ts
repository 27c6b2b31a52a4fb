import { secretHider } from '../../base/secrets.ts'
import { isJsonFields, type Json, type JsonFields } from '../../base/json.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { isSecretReference } from '../plan/secret-reference.ts'
import { isSecretName, sensitiveIn } from './sensitive.ts'

const HIDDEN = '[secret]'
const SHORTEST = 4
const LONGEST_SHOWN = 200
const LONGEST_MASKED = 20_000

export type Mask = { value(value: Json): Json; text(text: string): string }

/**
 * Hides the values of secret inputs, and values that look like secrets, in everything that is shown
 * or recorded about a decision or a run.
 */
export function maskOf(manifest: Manifest, inputs: JsonFields): Mask {
  const secrets = manifest.signature.inputs.filter(({ secret }) => secret).flatMap(({ name }) => leavesOf(inputs[name] ?? null))
  const hider = secretHider(secrets, SHORTEST)
  const text = (shown: string): string => {
    const hidden = hider.text(shown)
    return sensitiveIn(hidden, { emails: false }) === null ? hidden : HIDDEN
  }
  const value = (shown: Json): Json => {
    if (typeof shown === 'string') return secrets.includes(shown) ? HIDDEN : text(shown)
    if (typeof shown === 'number') return secrets.includes(String(shown)) || sensitiveIn(shown, { emails: false }) ? HIDDEN : shown
    if (Array.isArray(shown)) return shown.map(value)
    if (!isJsonFields(shown)) return shown
    return Object.fromEntries(Object.entries(shown).map(([name, inner]) => [text(name), isSecretName(name, inner) ? HIDDEN : value(inner)]))
  }
  return { value, text }
}

/**
 * For a sentence: a value that is masked and short. One that is far too long for that is not gone
 * through, for each expression that reads it.
 */
export function shownValue(mask: Mask, value: unknown): string {
  if (value === undefined) return '(nothing)'
  if (roomBeside(value, LONGEST_MASKED) < 0) return `(more than ${LONGEST_MASKED} characters)`
  const text = JSON.stringify(mask.value(value as Json))
  return text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text
}

/** The characters left beside the value; stops once that is below zero. */
function roomBeside(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length
  if (typeof value !== 'object' || value === null) return room - 4
  let left = room
  for (const name in value) {
    left = roomBeside((value as Record<string, unknown>)[name], left - name.length)
    if (left < 0) break
  }
  return left
}

function leavesOf(value: Json): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'number') return [String(value)]
  // A name is no secret, and says what an error is about.
  if (isSecretReference(value)) return []
  if (Array.isArray(value)) return value.flatMap(leavesOf)
  return isJsonFields(value) ? Object.values(value).flatMap(leavesOf) : []
}
