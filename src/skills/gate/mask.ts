import { secretHider } from '../../base/secrets.ts'
import { mapJson, type Json, type JsonFields } from '../../base/json.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { isSecretReference } from '../plan/secret-reference.ts'
import { isSecretName, looksPlain, sensitiveIn } from './sensitive.ts'

const HIDDEN = '[secret]'
const SHORTEST = 4
const LONGEST_SHOWN = 200
const LONGEST_MASKED = 20_000

export type SecretMask = { value: (value: Json) => Json; text: (text: string) => string }

/** Masks the values of secret inputs, and values that look like secrets, in logs and reports. */
export function maskOf(manifest: Manifest, inputs: JsonFields): SecretMask {
  const secrets = manifest.signature.inputs.filter(({ secret }) => secret).flatMap(({ name }) => leavesOf(inputs[name] ?? null))
  const hider = secretHider(secrets, SHORTEST)
  const text = (shown: string): string => {
    const hidden = secrets.length === 0 ? shown : hider.text(shown)
    return sensitiveIn(hidden, { emails: false }) === null ? hidden : HIDDEN
  }
  const visit = (shown: unknown, name: string | number | null): unknown => {
    if (typeof name === 'string' && isSecretName(name, shown)) return HIDDEN
    if (typeof shown === 'string') return secrets.includes(shown) ? HIDDEN : text(shown)
    return typeof shown === 'number' && (secrets.includes(String(shown)) || sensitiveIn(shown, { emails: false })) ? HIDDEN : shown
  }
  // Most values hold nothing to mask.
  const value = (shown: Json): Json => (secrets.length === 0 && looksPlain(shown) ? shown : (mapJson(shown, visit, { name: text }) as Json))
  return { value, text }
}

/** A masked value as part of a sentence. Very long values are not walked. */
export function shownValue(mask: SecretMask, value: unknown): string {
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
  const leaves: string[] = []
  mapJson(value, (inner) => {
    // A name is no secret, and says what an error is about.
    if (isSecretReference(inner)) return null
    if (typeof inner === 'string' || typeof inner === 'number') leaves.push(String(inner))
    return inner
  })
  return leaves
}
