import { credentialIn, isCardNumber, secretHider } from '../../base/secrets.ts'
import { mapJson, type Json, type JsonFields, DEEPEST, partsIn } from '../../base/json.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { isSecretReference } from '../plan/template.ts'

export type Sensitive = 'private_key' | 'token' | 'password' | 'card_number' | 'email' | 'secret_reference'

/**
 * The kind of secret that any part of the value looks like. Checks for e-mails if `emails` is set.
 */
export function sensitiveIn(value: Json, { emails }: { emails: boolean }): Sensitive | null {
  if (typeof value === 'string') return sensitiveText(value, emails)
  for (const { value: inner, key } of partsIn(value)) {
    const found = sensitivePart(inner, key, emails)
    if (found !== null) return found
  }
  return null
}

/** True if no part of the value looks like a secret, names included. False for very deep ones. */
export function looksPlain(value: Json): boolean {
  for (const { value: inner, key, depth } of partsIn(value)) {
    if (depth > DEEPEST || sensitivePart(inner, key, false) !== null) return false
    if (typeof key === 'string' && sensitiveText(key, false) !== null) return false
  }
  return true
}

function sensitivePart(value: unknown, key: string | number | null, emails: boolean): Sensitive | null {
  if (typeof key === 'string' && isSecretName(key, value)) return 'password'
  if (typeof value === 'string') return sensitiveText(value, emails)
  return typeof value === 'number' && isCardNumber(String(value)) ? 'card_number' : null
}

const EMAIL = /^[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}$/i

function sensitiveText(text: string, emails: boolean): Sensitive | null {
  const credential = credentialIn(text)
  if (credential !== null) return credential
  if (holdsCardNumber(text)) return 'card_number'
  return emails && text.split(/[\s<>()[\],;:"]+/).some((word) => EMAIL.test(word.replace(/\.$/, ''))) ? 'email' : null
}

/** A card's digits come in groups, and other numbers may be adjacent. */
function holdsCardNumber(text: string): boolean {
  const runs = text.match(/\d(?:[ -]?\d){12,40}/g) ?? []
  return runs.some((run) => {
    const groups = run.split(/[ -]/)
    return groups.some((_, start) =>
      groups.slice(start).some((__, length) => isCardNumber(groups.slice(start, start + length + 1).join(''))),
    )
  })
}

const SECRET_NAMES = new Set(
  'password passwd pwd secret apikey secretkey privatekey accesstoken refreshtoken clientsecret authorization'.split(' '),
)

/** A field whose name says that its value is secret. */
export const isSecretName = (name: string, value: unknown): boolean =>
  value !== null && value !== '' && SECRET_NAMES.has(name.toLowerCase().replaceAll(/[_-]/g, ''))

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
