import { z } from 'zod'
import type { Json, JsonFields } from '../base/json.ts'
import { fillKey, fillPlaces, fillText, placesIn, textOf, type Filler } from '../base/template.ts'

const NAME = /^\s*(\w+)\s*$/
const nameOf = (place: string): string | undefined => NAME.exec(place)?.[1]

export const slotsIn = (value: Json): string[] => placesIn(value).flatMap(({ place }) => nameOf(place) ?? [])

/** The input of a request: each slot is a text that must be there. */
export const textSlots = ({ url, headers = {}, body = null }: Request, key: string | null = null) =>
  Object.fromEntries(slotsIn([url, ...Object.values(headers), body, key]).map((name) => [name, z.string()]))
type Request = { url: string; headers?: Readonly<Record<string, string>> | undefined; body?: Json | undefined }

export const fillSlots = (value: Json, fields: JsonFields): Json => fillPlaces(value, slotsOf(fields))

export const fillKeySlots = (template: string, fields: JsonFields): string => fillKey(template, slotsOf(fields))

export const fillUrl = (url: string, fields: JsonFields): string =>
  fillText(url, (place) => {
    const filled = slotsOf(fields).text(place, '')
    return nameOf(place) === undefined ? filled : pathSafe(encodeURIComponent(filled))
  })

/** Braces around anything but a name are plain text. */
function slotsOf(fields: JsonFields): Filler {
  const value = (place: string): Json => {
    const name = nameOf(place)
    if (name === undefined) return `{{${place}}}`
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) throw new Error(`the input has no ${name}`)
    return field
  }
  return { value, text: (place) => textOf(value(place)) }
}

/** A segment of dots only would lead to another place, encoded or not. */
const pathSafe = (text: string): string => {
  if (/^\.+$/.test(text)) throw new Error(`${text} cannot stand in an address`)
  return text
}
