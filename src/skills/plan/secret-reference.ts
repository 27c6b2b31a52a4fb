import { isFields } from '../../base/check-json.ts'
import { secretName } from '../../contract/settings/outside-tools.ts'
import type { JsonFields } from '../../base/json.ts'
import type { Manifest } from '../manifest/manifest.ts'

/**
 * Names a secret of the deployment in the place of its value, which stands nowhere but in the call
 * of a step's tool.
 */
type SecretReference = { secret: string }

export const isSecretReference = (value: unknown): value is SecretReference =>
  isFields(value) && Object.keys(value).length === 1 && secretName.safeParse(value['secret']).success

/** True if any part of the value names a secret. */
export function holdsReference(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsReference)
  return isFields(value) && (isSecretReference(value) || Object.values(value).some(holdsReference))
}

/**
 * The secrets that a run may use: those that its secret inputs name. They come from the
 * blackboard's seeds alone.
 */
export function secretsOf({ signature }: Manifest, inputs: JsonFields): string[] {
  const named = signature.inputs.filter(({ secret }) => secret).map(({ name }) => inputs[name])
  return named.flatMap((value) => (isSecretReference(value) ? [value.secret] : []))
}

/** A copy of the arguments with the values of these secrets in the place of their names. */
export function withSecrets(value: unknown, secrets: ReadonlyMap<string, string>): unknown {
  if (isSecretReference(value)) return secrets.get(value.secret) ?? value
  if (Array.isArray(value)) return value.map((item) => withSecrets(item, secrets))
  if (!isFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withSecrets(inner, secrets)]))
}

/** Those that the arguments name, of those that may be used. */
export function namedIn(value: unknown, secrets: readonly string[]): string[] {
  if (isSecretReference(value)) return secrets.includes(value.secret) ? [value.secret] : []
  if (!Array.isArray(value) && !isFields(value)) return []
  return [...new Set(Object.values(value).flatMap((inner) => namedIn(inner, secrets)))]
}
