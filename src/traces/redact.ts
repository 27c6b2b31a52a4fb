const DEEPEST = 32
/**
 * Names that are remembered: events choose them, so that there is no end to them, nor to their
 * length.
 */
const MOST_NAMES = 5000
const LONGEST_NAME = 64
/** Names match whatever their case, `_` and `-`. */
export const normalName = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '')

const secretFields = [
  'password',
  'passwd',
  'secret',
  'token',
  'api_key',
  'apikey',
  'authorization',
  'cookie',
  'private_key',
  'access_token',
  'refresh_token',
  'client_secret',
]

/**
 * Gives a JSON value without what must not be logged: the same value where it holds nothing of the
 * kind, else a copy of what differs.
 */
type Redact = (value: unknown) => unknown

/**
 * Hides the values of the usual secret fields and of `fields`, also in a pair such as `{key:
 * 'token', value: …}`. Names match whatever their case, `_` and `-`: `apiKey` is `api_key`.
 */
export function redactor(fields: Iterable<string> = []): Redact {
  const hidden = new Set([...secretFields, ...fields].map(normalName))
  const known = new Map<string, boolean>()
  const hides = (name: string): boolean => {
    if (name.length > LONGEST_NAME) return hidden.has(normalName(name))
    let answer = known.get(name)
    if (answer === undefined) {
      answer = hidden.has(normalName(name))
      if (known.size >= MOST_NAMES) known.clear()
      known.set(name, answer)
    }
    return answer
  }
  return (value) => shown(value, hides, 0)
}

function shown(value: unknown, hides: (name: string) => boolean, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth >= DEEPEST) return '[too deep]'
  if (Array.isArray(value)) {
    const items = value.map((item) => shown(item, hides, depth + 1))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  const fields = value as Record<string, unknown>
  let changed: Map<string, unknown> | null = null
  const { key } = fields
  const pair = typeof key === 'string' && hides(key)
  for (const name of Object.keys(fields)) {
    const inner = hides(name) || (pair && name === 'value') ? '[redacted]' : shown(fields[name], hides, depth + 1)
    if (inner !== fields[name]) (changed ??= new Map<string, unknown>()).set(name, inner)
  }
  if (changed === null) return value
  // fromEntries defines each field, where an assignment to `__proto__` would set the prototype.
  return Object.fromEntries(Object.entries(fields).map(([name, inner]) => [name, changed.has(name) ? changed.get(name) : inner]))
}
