import type { Steps } from './steps.ts'
import { limits } from './limits.ts'

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

export const hashJson = (value: unknown): Promise<string> => sha256(canonicalJson(value))

/** The JSON of a value, or null if it has none. */
export function jsonText(value: unknown): string | null {
  try {
    return JSON.stringify(value ?? null) ?? null
  } catch {
    return null
  }
}

export function jsonValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A value as JSON has it; undefined if it has none. */
export const asJson = (value: unknown): Json | undefined => jsonValue(jsonText(value) ?? '') as Json | undefined

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

/** Levels of a value that are entered, unless more or fewer are asked for. */
export const DEEPEST = 64

/** False for class instances. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** True if a value has parts below the levels that `mapJson` enters. */
export function isTooDeep(value: unknown, levels = DEEPEST): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels < 0) return true
  if (Array.isArray(value)) return value.some((item) => isTooDeep(item, levels - 1))
  return isPlain(value) && Object.values(value).some((field) => isTooDeep(field, levels - 1))
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
export function mapJson(root: unknown, visit: Visit, { name: rename, deepest = DEEPEST, path, drops = false }: Walk = {}): unknown {
  let depth = 0
  const walk = (value: unknown, key: Key, parent: unknown): unknown => {
    const mapped = visit(value, key, parent)
    if (mapped !== value || typeof value !== 'object' || value === null) return mapped
    if (depth > deepest) return '[too deep]'
    if (Array.isArray(value)) return walkItems(value)
    return isPlain(value) ? walkFields(value) : value
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

type Part = { value: unknown; key: Key; depth: number }

/** The parts of a JSON value, outermost first, as `mapJson` visits them. */
export function partsIn(root: unknown): Part[] {
  const parts: Part[] = []
  const add = (value: unknown, key: Key, depth: number): void => {
    parts.push({ value, key, depth })
    if (depth > DEEPEST) return
    if (Array.isArray(value)) for (let index = 0; index < value.length; index++) add(value[index], index, depth + 1)
    else if (isPlain(value)) for (const name of Object.keys(value)) add(value[name], name, depth + 1)
  }
  add(root, null, 0)
  return parts
}

/**
 * The names of fields in a JSON value that `known` lacks, and the `key` of pairs such as
 * `{key: 'token', value: …}`. Null if a part lies deeper than `deepest` levels.
 */
export function namesBeside(known: ReadonlySet<string>, root: unknown, deepest: number): string[] | null {
  const found: string[] = []
  const isWithin = (value: unknown, levels: number): boolean => {
    if (typeof value !== 'object' || value === null) return true
    if (levels < 0) return false
    if (Array.isArray(value)) return value.every((item) => isWithin(item, levels - 1))
    if (!isPlain(value)) return true
    for (const name of Object.keys(value)) {
      if (!known.has(name)) found.push(name)
      if (name === 'key' && typeof value[name] === 'string' && 'value' in value && !known.has(value[name])) found.push(value[name])
      if (!isWithin(value[name], levels - 1)) return false
    }
    return true
  }
  return isWithin(root, deepest) ? found : null
}

const encoder = new TextEncoder()
// oxlint-disable-next-line no-control-regex -- U+0000 is one byte, too
const NON_ASCII = /[^\u0000-\u007f]/

/** Size of a text in UTF-8, the platform's measure. A lone surrogate counts as U+FFFD (3 bytes). */
export function byteLength(text: string): number {
  return NON_ASCII.test(text) ? encoder.encode(text).byteLength : text.length
}

/** `byteLength(text) <= bytes`, but counts only if the number of UTF-16 units is not decisive. */
export function fitsBytes(text: string, bytes: number): boolean {
  return text.length <= bytes && (text.length * 3 <= bytes || byteLength(text) <= bytes)
}

/** Joins JSON texts into arrays of at most `most` bytes. A larger text gets its own array. */
export function jsonChunks(texts: readonly string[], most: number = limits.sql_json_bytes): string[] {
  const chunks: string[] = []
  let chunk: string[] = []
  // Two brackets, and one comma fewer than texts.
  let size = 1
  for (const text of texts) {
    const bytes = byteLength(text) + 1
    if (chunk.length > 0 && size + bytes > most) {
      chunks.push(`[${chunk.join(',')}]`)
      chunk = []
      size = 1
    }
    chunk.push(text)
    size += bytes
  }
  if (chunk.length > 0) chunks.push(`[${chunk.join(',')}]`)
  return chunks
}
