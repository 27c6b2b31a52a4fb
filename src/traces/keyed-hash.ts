import { createHash, createHmac } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import { oncePer } from '../base/once-per.ts'
import { maskOnce, plainMask, redactor, type TextMask } from './redact.ts'

/** A shorter secret could be guessed from a value and its hash. */
export const SHORTEST_REDACTION_SECRET = 16

/** The salt of a value, which only the secret gives. Whoever has it can guess that value alone. */
export const saltOf = (secret: string, value: unknown): string =>
  createHmac('sha256', secret)
    .update(`reflex-salt/1\n${canonicalJson(value)}`)
    .digest('hex')

/** The mask of a value, by its salt: whoever has both can prove what the mask stands for. */
export const saltedMask = (salt: string, value: unknown): string =>
  `sha256:${createHash('sha256')
    .update(`reflex-mask/1\n${salt}\n${canonicalJson(value)}`)
    .digest('hex')}`

/** Masks a value as its salted hash: two hashes can be compared, and none can be guessed. */
export const keyedMask =
  (secret: string): TextMask =>
  (value) =>
    saltedMask(saltOf(secret, value), value)

type Variables = { REFLEX_REDACTION_SECRET?: string }

/** The secret of a deployment; null if it has none, or one that could be guessed. */
export function redactionSecret({ REFLEX_REDACTION_SECRET: text = '' }: Variables): string | null {
  const secret = text.trim()
  return secret.length < SHORTEST_REDACTION_SECRET ? null : secret
}

/** Without the secret, a hash could be guessed, so that values are masked without one. */
export const deploymentMask = oncePer((env: Variables): TextMask => {
  const secret = redactionSecret(env)
  return secret === null ? plainMask : keyedMask(secret)
})

const deploymentRedactor = oncePer((env: Variables) => redactor([], maskOnce(deploymentMask(env))))

/** Masks the usual secret fields of what scopes have not masked, such as events in the queue. */
export const withoutSecretFields = <Value>(env: Variables, value: Value): Value => deploymentRedactor(env)(value) as Value
