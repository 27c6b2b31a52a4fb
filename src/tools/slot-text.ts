import { isJsonFields, type Json, type JsonFields } from '../base/json.ts'
import { keyText } from './key-text.ts'

const SLOT = /\{\{\s*(\w+)\s*\}\}/g
const ONLY_SLOT = /^\{\{\s*(\w+)\s*\}\}$/

/** The names of the slots in the strings of a JSON value. */
export function slotsIn(value: Json): string[] {
  if (typeof value === 'string') return Array.from(value.matchAll(SLOT), ([, name = '']) => name)
  if (Array.isArray(value)) return value.flatMap(slotsIn)
  return isJsonFields(value) ? Object.values(value).flatMap(slotsIn) : []
}

/**
 * A copy with its slots filled. What is inserted is never looked at again. With `encode`, every
 * slot is text.
 */
export function fillSlots(value: Json, fields: JsonFields, encode?: (text: string) => string): Json {
  if (Array.isArray(value)) return value.map((item) => fillSlots(item, fields, encode))
  if (isJsonFields(value)) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fillSlots(inner, fields, encode)]))
  if (typeof value !== 'string') return value
  const only = encode ? undefined : ONLY_SLOT.exec(value)?.[1]
  if (only !== undefined) return fieldAt(fields, only)
  return value.replaceAll(SLOT, (_, name: string) => {
    const text = textOf(fieldAt(fields, name))
    return encode ? pathSafe(encode(text)) : text
  })
}

/** An idempotency key: other fields always give another one. */
export function fillKey(template: string, fields: JsonFields): string {
  const parts = template.split(SLOT)
  const literals = parts.filter((_, index) => index % 2 === 0)
  const names = parts.filter((_, index) => index % 2 === 1)
  return keyText(
    literals,
    names.map((name) => textOf(fieldAt(fields, name))),
  )
}

function fieldAt(fields: JsonFields, name: string): Json {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined
  if (value === undefined) throw new Error(`the input has no ${name}`)
  return value
}

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A segment that is nothing but dots would lead to another place, encoded or not. */
const pathSafe = (text: string): string => {
  if (/^\.+$/.test(text)) throw new Error(`${text} cannot stand in an address`)
  return text
}
