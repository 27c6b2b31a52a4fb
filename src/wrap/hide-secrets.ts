import { isJsonFields } from '../skills/json.ts'

const HIDDEN = '[secret]'
/** A shorter word of a secret, such as `Bearer`, stands in other texts, too. */
const SHORTEST_WORD = 8

/** A copy of a value without the secrets that may have come back in it, whole or by their words (`Bearer` and the token behind it). */
export function hideSecrets(value: unknown, secrets: readonly string[]): unknown {
  const hidden = secrets.flatMap((secret) => [secret, ...secret.split(/\s+/).filter(({ length }) => length >= SHORTEST_WORD)])
  return hidden.length === 0 ? value : hide(value, hidden)
}

function hide(value: unknown, hidden: readonly string[]): unknown {
  if (typeof value === 'string') return hidden.reduce((text, secret) => text.replaceAll(secret, HIDDEN), value)
  if (Array.isArray(value)) return value.map((item) => hide(item, hidden))
  if (!isJsonFields(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [hide(name, hidden), hide(inner, hidden)]))
}
