import { createHmac } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import { oncePer } from '../base/once-per.ts'
import { maskOnce, plainMask, redactor, type TextMask } from './redact.ts'

/** A shorter secret could be guessed from a value and its hash. */
export const SHORTEST_REDACTION_SECRET = 16

/** Masks a value as its keyed hash: two hashes can be compared, and none can be guessed. */
export const keyedMask =
  (secret: string): TextMask =>
  (value) =>
    `sha256:${createHmac('sha256', secret).update(canonicalJson(value)).digest('hex')}`

/** Without the secret, a hash could be guessed, so that values are masked without one. */
export const deploymentMask = oncePer((env: { REFLEX_REDACTION_SECRET?: string }): TextMask => {
  const secret = env.REFLEX_REDACTION_SECRET?.trim() ?? ''
  return secret.length < SHORTEST_REDACTION_SECRET ? plainMask : keyedMask(secret)
})

const deploymentRedactor = oncePer((env: { REFLEX_REDACTION_SECRET?: string }) => redactor([], maskOnce(deploymentMask(env))))

/** Masks the usual secret fields of what scopes have not masked, such as events in the queue. */
export const withoutSecretFields = <Value>(env: { REFLEX_REDACTION_SECRET?: string }, value: Value): Value =>
  deploymentRedactor(env)(value) as Value
