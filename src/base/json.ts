import type { Steps } from './steps.ts'

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

/** Characters of canonical JSON that one step writes. */
const STEP = 32_768

/** The canonical JSON of a value that may be large, in steps: of its fields, and of their parts. */
export function* canonicalInSteps(value: unknown, depth = 2): Steps<string> {
  if (depth === 0 || typeof value !== 'object' || value === null) return canonicalJson(value)
  const is_list = Array.isArray(value)
  const fields = value as Record<string, unknown>
  const names = is_list
    ? value.keys()
    : Object.keys(fields)
        .filter((name) => fields[name] !== undefined)
        .sort()
  const texts: string[] = []
  let written = 0
  for (const name of names) {
    const text = yield* canonicalInSteps(fields[name], depth - 1)
    texts.push(is_list ? text : `${JSON.stringify(name)}:${text}`)
    written += text.length
    if (written < STEP) continue
    written = 0
    yield
  }
  return is_list ? `[${texts.join(',')}]` : `{${texts.join(',')}}`
}

type Key = string | number | null
type Visit = (value: unknown, key: Key, parent: unknown) => unknown
/**
 * `name` maps names of fields. `path` is filled with the path of the visited value. `drops`: parts
 * that are mapped to undefined are left out.
 */
type Walk = { name?: (name: string) => string; deepest?: number; path?: (string | number)[]; drops?: boolean }

/**
 * Maps a JSON value, outermost first. Parts of a value that `visit` returns unchanged are visited
 * too. Unchanged parts stay the same objects; class instances are not entered.
 */
export function mapJson(root: unknown, visit: Visit, { name: rename, deepest = 64, path, drops = false }: Walk = {}): unknown {
  let depth = 0
  const walk = (value: unknown, key: Key, parent: unknown): unknown => {
    const mapped = visit(value, key, parent)
    if (mapped !== value || typeof value !== 'object' || value === null) return mapped
    if (depth > deepest) return '[too deep]'
    if (Array.isArray(value)) return walkItems(value)
    const prototype: unknown = Object.getPrototypeOf(value)
    return prototype === Object.prototype || prototype === null ? walkFields(value as Record<string, unknown>) : value
  }
  const part = (value: unknown, key: string | number, parent: unknown): unknown => {
    depth += 1
    path?.push(key)
    const mapped = walk(value, key, parent)
    path?.pop()
    depth -= 1
    return mapped
  }
  const walkItems = (items: unknown[]): unknown[] => {
    let changed = items
    for (let index = 0; index < items.length; index++) {
      const inner = part(items[index], index, items)
      if (inner !== items[index]) (changed === items ? (changed = [...items]) : changed)[index] = inner
    }
    return drops ? changed.filter((item) => item !== undefined) : changed
  }
  const walkFields = (fields: Record<string, unknown>): object => {
    const names = Object.keys(fields)
    let changed: [string, unknown][] | null = null
    for (let index = 0; index < names.length; index++) {
      const name = names[index] ?? ''
      const inner = part(fields[name], name, fields)
      const shown = rename ? rename(name) : name
      if (inner !== fields[name] || shown !== name) (changed ??= Object.entries(fields))[index] = [shown, inner]
    }
    // fromEntries defines each field, where an assignment to `__proto__` would set the prototype.
    return changed ? Object.fromEntries(drops ? changed.filter(([, inner]) => inner !== undefined) : changed) : fields
  }
  return walk(root, null, null)
}

/** The first value, outermost first, for which `look` returns something other than null. */
export function findJson<Found>(root: unknown, look: (value: unknown, key: Key) => Found | null): Found | null {
  let found: Found | null = null
  mapJson(root, (value, key) => ((found ??= look(value, key)) === null ? value : null))
  return found
}
