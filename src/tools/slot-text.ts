import { z } from 'zod'
import type { Json, JsonFields } from '../base/json.ts'
import { requestSlots, slotOf, type SlottedRequest } from '../base/slots.ts'
import { fillKey, fillPlaces, fillText, textOf, type Filler } from '../base/template.ts'

/** The JSON Schema of a tool's input: its own, or a schema of its text slots. */
export const inputSchemaOf = (tool: SlottedRequest & { input?: JsonFields | undefined }): JsonFields =>
  tool.input ?? {
    type: 'object',
    properties: Object.fromEntries(requestSlots(tool).map(({ name }) => [name, { type: 'string' }])),
    required: requestSlots(tool).flatMap(({ name, optional }) => (optional ? [] : [name])),
  }

/** The input of a request without a schema: each slot is a text. */
export const textSlots = (request: SlottedRequest): z.ZodObject<Record<string, z.ZodType<string>>> => {
  const slots = requestSlots(request).map(({ name, optional }) => [name, optional ? z.string().optional() : z.string()])
  return z.strictObject(Object.fromEntries(slots))
}

export const fillSlots = (value: Json, fields: JsonFields): Json => fillPlaces(value, slotsOf(fields))

export const fillKeySlots = (template: string, fields: JsonFields): string => fillKey(template, slotsOf(fields))

/** An address, its query, and what follows; the mark of `{{slot?}}` begins no query. */
const QUERY = /^((?:\{\{[^{}]*\}\}|\{(?!\{)|[^?{])*)\?([^#]*)(.*)$/s
const ONLY_SLOT = /^([^={}]+)=\{\{([^{}]*)\}\}$/

/**
 * Fills the slots of an address, encoded. A parameter of the query that is one slot is repeated
 * for each item of a list, and left out without a value.
 */
export function fillUrl(url: string, fields: JsonFields): string {
  const slots = slotsOf(fields)
  const fill = (text: string, safe: (filled: string) => string): string =>
    fillText(text, (place) => (slotOf(place) === null ? slots.text(place, '') : safe(encodeURIComponent(slots.text(place, '')))))
  const [, address = url, query, rest = ''] = QUERY.exec(url) ?? []
  if (query === undefined) return fill(url, pathSafe)
  const parameters = query.split('&').flatMap((parameter) => {
    const [, name, place = ''] = ONLY_SLOT.exec(parameter) ?? []
    const value = name === undefined || slotOf(place) === null ? null : slots.value(place, '')
    if (value === undefined) return []
    if (!Array.isArray(value)) return [fill(parameter, String)]
    return value.map((item) => `${name}=${encodeURIComponent(textOf(item))}`)
  })
  return `${fill(address, pathSafe)}${parameters.length > 0 ? '?' : ''}${parameters.join('&')}${fill(rest, pathSafe)}`
}

function slotsOf(fields: JsonFields): Filler {
  const value = (place: string): Json | undefined => {
    const slot = slotOf(place)
    if (slot === null) return `{{${place}}}`
    const field = Object.hasOwn(fields, slot.name) ? fields[slot.name] : undefined
    if (field === undefined && !slot.optional) throw new Error(`the input has no ${slot.name}`)
    return field
  }
  return { value, text: (place) => textOf(value(place) ?? '') }
}

/** A segment of dots only would lead to another place, encoded or not. */
const pathSafe = (text: string): string => {
  if (/^\.+$/.test(text)) throw new Error(`${text} cannot stand in an address`)
  return text
}
