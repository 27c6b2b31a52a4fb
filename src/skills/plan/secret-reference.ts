import { isFields } from '../../base/check-json.ts'
import { secretName } from '../../contract/settings/outside-tools.ts'
import { mapJson, partsIn, type JsonFields } from '../../base/json.ts'
import type { Manifest } from '../manifest/manifest.ts'

/** Names a secret of the deployment. Its value is filled in only for the call of a step's tool. */
type SecretReference = { secret: string }

export const isSecretReference = (value: unknown): value is SecretReference =>
  isFields(value) && Object.keys(value).length === 1 && secretName.safeParse(value['secret']).success

export function holdsReference(value: unknown): boolean {
  for (const { value: inner } of partsIn(value)) if (typeof inner === 'object' && isSecretReference(inner)) return true
  return false
}

/** The secrets that a run's secret inputs name. They come only from the blackboard's seeds. */
export function secretsOf({ signature }: Manifest, inputs: JsonFields): string[] {
  const named = signature.inputs.filter(({ secret }) => secret).map(({ name }) => inputs[name])
  return named.flatMap((value) => (isSecretReference(value) ? [value.secret] : []))
}

export const withSecrets = (value: unknown, secrets: ReadonlyMap<string, string>): unknown =>
  mapJson(value, (inner) => (isSecretReference(inner) ? (secrets.get(inner.secret) ?? inner) : inner))

/** The secrets that the arguments name, out of the secrets that may be used. */
export function namedIn(value: unknown, secrets: readonly string[]): string[] {
  const named = new Set<string>()
  for (const { value: inner } of partsIn(value)) {
    if (isSecretReference(inner) && secrets.includes(inner.secret)) named.add(inner.secret)
  }
  return [...named]
}
