export type Json = null | boolean | number | string | Json[] | JsonFields
export type JsonFields = { [name: string]: Json }

export const isJsonFields = (value: unknown): value is JsonFields => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Deep equality of JSON values, independent of the order of keys. */
export const sameJson = (left: unknown, right: unknown): boolean => left === right || canonicalJson(left) === canonicalJson(right)

/** SHA-256 as 64 hex digits, by Web Crypto, which runs anywhere but is asynchronous. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** SHA-256 of the canonical JSON. */
export const hashJson = (value: unknown): Promise<string> => sha256(canonicalJson(value))

/** The JSON of a value, or null if it has none. */
export function jsonText(value: unknown): string | null {
  try {
    return JSON.stringify(value ?? null) ?? null
  } catch {
    return null
  }
}

/** The value of JSON, or undefined. */
export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** JSON with sorted keys: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = value as Record<string, unknown>
  const texts = Object.keys(fields)
    .filter((name) => fields[name] !== undefined)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(fields[name])}`)
  return `{${texts.join(',')}}`
}

type Path = readonly (string | number)[]
type Visit = (value: unknown, path: Path, parent: unknown) => unknown
/** `name` maps the names of fields. Objects and lists below `deepest` levels are replaced. */
type Walk = { name?: (name: string) => string; deepest?: number }

/**
 * Maps a JSON value, outermost first. Parts of a value that `visit` returns unchanged are visited
 * too. Unchanged parts stay the same objects; class instances are not entered.
 */
export function mapJson(root: unknown, visit: Visit, { name: rename = (name) => name, deepest = 64 }: Walk = {}): unknown {
  const path: (string | number)[] = []
  const part = (key: string | number, value: unknown, parent: unknown): unknown => {
    path.push(key)
    const mapped = walk(value, parent)
    path.pop()
    return mapped
  }
  const walk = (value: unknown, parent: unknown): unknown => {
    const mapped = visit(value, path, parent)
    if (mapped !== value || typeof value !== 'object' || value === null) return mapped
    if (path.length > deepest) return '[too deep]'
    if (Array.isArray(value)) {
      const items = value.map((item, index) => part(index, item, value))
      return items.some((item, index) => item !== value[index]) ? items : value
    }
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) return value
    // fromEntries defines each field, where an assignment to `__proto__` would set the prototype.
    let changed: [string, unknown][] | null = null
    for (const [index, name] of Object.keys(value).entries()) {
      const before = (value as Record<string, unknown>)[name]
      const [shown, inner] = [rename(name), part(name, before, value)]
      if (shown !== name || inner !== before) (changed ??= Object.entries(value))[index] = [shown, inner]
    }
    return changed ? Object.fromEntries(changed) : value
  }
  return walk(root, null)
}

/** The first value, outermost first, for which `look` returns something other than null. */
export function findJson<Found>(root: unknown, look: (value: unknown, path: Path) => Found | null): Found | null {
  let found: Found | null = null
  mapJson(root, (value, path) => ((found ??= look(value, path)) === null ? value : null))
  return found
}
