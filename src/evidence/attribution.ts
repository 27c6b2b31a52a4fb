import type { Json } from '../base/json.ts'
import type { Event } from '../core/event.ts'

/** Shorter texts occur in other texts by chance, so they have to be equal. */
const LEAST_WITHIN = 4
const PART = /^[\w-]{1,64}$/
const DEEPEST = 6
const MOST = 200

/** The scalar fields of a value by their paths, such as `registry.name`. */
export function fieldsOf(value: unknown, deepest = DEEPEST): Map<string, Json> {
  const found = new Map<string, Json>()
  const visit = (inner: unknown, path: readonly string[]): void => {
    if (found.size >= MOST) return
    const isScalar = typeof inner === 'string' || typeof inner === 'number' || typeof inner === 'boolean'
    if (isScalar) found.set(path.join('.'), inner)
    if (typeof inner !== 'object' || inner === null || path.length >= deepest) return
    for (const [name, part] of Object.entries(inner)) if (PART.test(name)) visit(part, [...path, name])
  }
  visit(value, [])
  return found
}

/** The fields that its sender gave. */
export function ownFields({
  id: _id,
  scope: _scope,
  timestamp: _timestamp,
  meta: _meta,
  ...own
}: Event): Omit<Event, 'id' | 'scope' | 'timestamp' | 'meta'> {
  return own
}

/** The id of each event, and the values of its fields. */
type HeldValues = readonly (readonly Json[])[]
export const heldBy = (events: readonly Event[]): HeldValues => events.map((event) => [event.id, ...fieldsOf(ownFields(event)).values()])

/**
 * The places of the events that an act with this input may belong to: those that hold the values by
 * which the events differ; all, if no value tells them apart.
 */
export function ownersOf(input: unknown, held: HeldValues): number[] {
  let owners = Array.from(held.keys())
  for (const value of fieldsOf(input).values()) {
    const holding = new Set(held.flatMap((fields, index) => (isAmong(fields, value) ? [index] : [])))
    if (holding.size > 0) owners = owners.filter((index) => holding.has(index))
  }
  return owners
}

/**
 * True if an act with this input names what other events hold, and nothing that the event at this
 * place holds: a sender of one event cannot lay its acts to another. Values that events hold by
 * chance, such as small numbers, do not count.
 */
export function isOfOthers(input: unknown, held: HeldValues, place: number): boolean {
  const values = Array.from(fieldsOf(input).values()).filter(isTelling)
  const own = held[place] ?? []
  return values.some((value) => held.some((fields) => isAmong(fields, value))) && !values.some((value) => isAmong(own, value))
}

/** True if a text has a value that the event at this place holds. */
export const saysOf = (text: string, held: HeldValues, place: number): boolean =>
  (held[place] ?? []).some((value) => isTelling(value) && text.includes(String(value)))

const isTelling = (value: Json): value is string | number =>
  (typeof value === 'string' || typeof value === 'number') && String(value).length >= LEAST_WITHIN

const isAmong = (fields: readonly Json[], value: Json): boolean => fields.some((field) => holds(field, value))

function holds(field: Json, value: Json): boolean {
  if (field === value) return true
  if (typeof field !== 'string' || (typeof value !== 'string' && typeof value !== 'number')) return false
  const text = String(value)
  return text.length >= LEAST_WITHIN && field.includes(text)
}
