import { mapJson, type Json } from './json.ts'

const PLACE = /\{\{([^{}]*)\}\}/g
const ONLY_PLACE = /^\{\{([^{}]*)\}\}$/

/** Gives what fills a placeholder, by the text in its braces. `at` is the path of its string. */
type Fill<Value> = (place: string, at: string) => Value
/**
 * `value` is for a string that is a single placeholder, `text` for one within a longer text. A
 * field or an item whose value is undefined is left out.
 */
export type Filler = { value: Fill<Json | undefined>; text: Fill<string> }

/** The placeholders `{{…}}` in the strings of a JSON value, but not in names of fields. */
export function placesIn(value: unknown): { place: string; at: string }[] {
  const places: { place: string; at: string }[] = []
  const path: (string | number)[] = []
  const visit = (text: unknown): unknown => {
    if (typeof text === 'string') for (const [, place = ''] of text.matchAll(PLACE)) places.push({ place, at: path.join('.') })
    return text
  }
  mapJson(value, visit, { path })
  return places
}

/** Fills the placeholders of a JSON value. Inserted values are not parsed again. */
export function fillPlaces(template: Json, filler: Filler): Json {
  const path: (string | number)[] = []
  const visit = (text: unknown): unknown => {
    if (typeof text !== 'string') return text
    const only = ONLY_PLACE.exec(text)?.[1]
    return only === undefined ? fillText(text, filler.text, path.join('.')) : filler.value(only, path.join('.'))
  }
  return (mapJson(template, visit, { path, drops: true }) ?? null) as Json
}

/** `{{name?}}` may have no value: alone it is then left out, and in a text it is empty. */
export function optionalPlace(place: string): { name: string; optional: boolean } {
  const text = place.trim()
  const optional = text.endsWith('?')
  return { name: optional ? text.slice(0, -1).trimEnd() : text, optional }
}

export const fillText = (text: string, fill: Fill<string>, at = ''): string => text.replaceAll(PLACE, (_, place: string) => fill(place, at))

/** Fills an idempotency key, so that different values always give different keys. */
export function fillKey(template: string, filler: Filler): string {
  const only = ONLY_PLACE.exec(template)?.[1]
  if (only !== undefined) return textOf(filler.value(only, '') ?? null)
  const parts = template.split(PLACE)
  const [literals, places] = [0, 1].map((rest) => parts.filter((_, index) => index % 2 === rest))
  return keyText(literals ?? [], places?.map((place) => filler.text(place, '')) ?? [])
}

export const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/**
 * Builds an idempotency key from literals and the values between them. Different lists of values
 * give different keys, so that a hostile value cannot forge one: `%` and the first character of
 * each literal are percent-encoded in values, and `:` separates adjacent values.
 */
export function keyText(literals: readonly string[], values: readonly string[]): string {
  const [first = '', ...following] = literals
  const parted = following.map((literal, index) => (index === values.length - 1 ? literal : parting(literal)))
  const reserved = new Set(['%', ...parted.slice(0, -1).map((literal) => literal.charAt(0))])
  const written = values.length < 2 ? values : values.map((value) => encoded(value, reserved))
  return first + written.map((value, index) => value + (parted[index] ?? '')).join('')
}

/** A text that begins with `%` would look like the encoding of a value's character. */
const parting = (literal: string): string => (literal === '' || literal.startsWith('%') ? `:${literal}` : literal)

/** By UTF-16 code units, so that no half of a surrogate pair is lost. */
const encoded = (value: string, reserved: ReadonlySet<string>): string =>
  Array.from({ length: value.length }, (_, index) => value.charAt(index))
    .map((unit) => (reserved.has(unit) ? percent(unit.charCodeAt(0)) : unit))
    .join('')

const percent = (code: number): string => (code < 256 ? `%${hex(code, 2)}` : `%u${hex(code, 4)}`)
const hex = (code: number, digits: number): string => code.toString(16).toUpperCase().padStart(digits, '0')
