import { isJsonFields, type Json } from '../../../base/json.ts'
import type { Episode } from '../episode.ts'
import { type ContextPath, pathCode, pathKey, valueAt } from './facts/condition.ts'
import { leavesOf } from './facts/facts.ts'
import type { FieldNames } from './facts/names.ts'
import { dayOf, MOST_ITEMS } from './facts/readings.ts'
import { quote } from './facts/text.ts'

export type RuleGuard =
  | { path: readonly string[]; values: readonly (string | boolean | null)[] }
  | { names: readonly string[]; path: readonly string[] }
  /** The words of a field whose texts are names. */
  | { path: readonly string[]; words: readonly string[] }
  /** The values of a field of the items of a list. */
  | { path: readonly string[]; of: string; values: readonly (string | boolean | null)[] }
  /** The slow path says words beside such acts, so it decides where somebody can hear them. */
  | 'unheard'
export function guardCode(guard: RuleGuard): string {
  if (guard === 'unheard') return 'if (context.event.meta?.heard === true) return null'
  if ('words' in guard) return `if (wordsOf(${pathCode(guard.path)}).some((word) => !${listCode(guard.words)}.includes(word))) return null`
  if ('names' in guard)
    return `if (Object.keys(${pathCode(guard.path)} ?? {}).some((name) => !${listCode(guard.names)}.includes(name))) return null`
  if ('of' in guard) return `if (hasOther(${pathCode(guard.path)}, ${quote(guard.of)}, ${listCode(guard.values)})) return null`
  const value = pathCode(guard.path)
  const [only] = guard.values
  return guard.values.length === 1
    ? `if (${value} !== ${valueCode(only ?? null)}) return null`
    : `if (!${listCode(guard.values)}.includes(${value})) return null`
}

export const listCode = (values: readonly Json[]): string => `[${values.map(valueCode).join(', ')}]`

export function valueCode(value: Json): string {
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return listCode(value)
  return isJsonFields(value) ? fieldsCode(Object.entries(value).map(([name, inner]) => [name, valueCode(inner)])) : JSON.stringify(value)
}

/** Names are computed if a plain one would mean something else, as `__proto__` does. */
export const fieldsCode = (fields: readonly (readonly [string, string])[]): string =>
  fields.length === 0
    ? '{}'
    : `{ ${fields.map(([name, code]) => `${name === '__proto__' ? "['__proto__']" : /^[A-Za-z]\w*$/.test(name) ? name : quote(name)}: ${code}`).join(', ')} }`

export const HAS_OTHER_SOURCE = `// True if an item of a list has another value there.
const hasOther = (list, of, values) => Array.isArray(list) && list.slice(0, ${MOST_ITEMS}).some((one) => !values.includes(one?.[of]))`

/** So many values a guard knows, each of which several decisions had. */
export const MOST_VALUES = 12
export const LEAST_EACH = 3
const MOST_NAMES = 60
const MOST_FIELDS = 40

/** The types of events that a decision was taken on. */
export const typesOf = (own: readonly Episode[]): RuleGuard => ({
  path: ['event', 'type'],
  values: [...new Set(own.map(({ saw }) => saw.event.type))].sort(),
})

/** Keeps a reflex to the values of fields and the names of counts that it was taught with. */
export function guardsOf(own: readonly Episode[], all: readonly Episode[]): RuleGuard[] {
  const guards: RuleGuard[] = [typesOf(own)]
  for (const path of fieldsOf(own)) {
    if (guards.length > MOST_FIELDS) break
    const counts = new Map<string | boolean | null, number>()
    for (const { saw } of own) {
      const value = valueAt(saw, path)
      if (typeof value === 'string' || typeof value === 'boolean' || value === null) counts.set(value, (counts.get(value) ?? 0) + 1)
      if (counts.size > MOST_VALUES) break
    }
    // A day does not come again.
    if ([...counts.keys()].some((value) => dayOf(value) !== undefined)) continue
    const values = [...counts.keys()].sort((one, other) => (String(one) < String(other) ? -1 : 1))
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const isListed = values.length > 0 && values.length <= MOST_VALUES && Math.min(...counts.values()) >= LEAST_EACH
    if (isListed && total === own.length) guards.push({ path, values })
  }
  guards.push(...itemGuardsOf(own))
  const names = new Set(all.flatMap(({ saw }) => Object.keys(saw.window['10m']?.by_type ?? {})))
  if (names.size <= MOST_NAMES) guards.push({ path: ['window', '10m', 'by_type'], names: [...names].sort() })
  return guards
}

/** The words of fields with names, unless a guard knows the values of the field. */
export function nameGuardsOf(names: FieldNames, guards: readonly RuleGuard[]): RuleGuard[] {
  const known = new Set(guards.flatMap((guard) => (guard === 'unheard' ? [] : [pathKey(guard.path)])))
  return Array.from(names).flatMap(([key, { path, words }]) => (known.has(key) ? [] : [{ path, words }]))
}

/** The fields of the first event, also inside of other fields. Outer ones first. */
const fieldsOf = ([first]: readonly Episode[]): ContextPath[] =>
  (first ? leavesOf(first.saw).leaves : [])
    .flatMap(({ path, value }) => (isOfEvent(path) && typeof value !== 'number' ? [path] : []))
    .sort((one, other) => one.length - other.length || (pathKey(one) < pathKey(other) ? -1 : 1))

const isOfEvent = ([first, second]: ContextPath): boolean => first === 'event' && second !== 'type' && second !== 'meta'

/** The fields that all items of a list have, with few values, as guards. */
function itemGuardsOf(own: readonly Episode[]): RuleGuard[] {
  const found = new Map<string, { path: readonly string[]; of: string; counts: Map<string | boolean | null, number>; items: number }>()
  const lengths = new Map<string, number>()
  for (const { saw } of own)
    for (const { path, of, items } of leavesOf(saw).lists) {
      const list = valueAt(saw, path)
      const key = pathKey(path)
      if (of === undefined && Array.isArray(list)) lengths.set(key, (lengths.get(key) ?? 0) + Math.min(list.length, MOST_ITEMS))
      if (of === undefined || path[0] !== 'event') continue
      const known = found.get(`${key} ${of}`) ?? { path, of, counts: new Map(), items: 0 }
      found.set(`${key} ${of}`, known)
      for (const item of items) {
        if (typeof item === 'number') continue
        known.items += 1
        if (known.counts.size <= MOST_VALUES) known.counts.set(item, (known.counts.get(item) ?? 0) + 1)
      }
    }
  return [...found.values()].flatMap(({ path, of, counts, items }): RuleGuard[] => {
    const isListed = counts.size > 0 && counts.size <= MOST_VALUES && Math.min(...counts.values()) >= LEAST_EACH
    const values = [...counts.keys()].sort((one, other) => (String(one) < String(other) ? -1 : 1))
    return isListed && items === lengths.get(pathKey(path)) ? [{ path, of, values }] : []
  })
}
