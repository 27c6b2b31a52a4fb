const DEEPEST = 32
const normal = (name: string): string => name.toLowerCase().replaceAll(/[_-]/g, '')

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
 * A deep copy of a JSON value without the values of the usual secret fields and of `fields`. Names match whatever their case, `_` and
 * `-`: `apiKey` is `api_key`.
 */
export function redact(value: unknown, fields: ReadonlySet<string> = new Set()): unknown {
  return copy(value, new Set([...secretFields, ...fields].map(normal)), 0)
}

function copy(value: unknown, hidden: ReadonlySet<string>, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (depth >= DEEPEST) return '[too deep]'
  if (Array.isArray(value)) return value.map((item) => copy(item, hidden, depth + 1))
  // fromEntries defines each field, where an assignment to `__proto__` would set the prototype.
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, hidden.has(normal(name)) ? '[redacted]' : copy(inner, hidden, depth + 1)]),
  )
}
