import type { Json } from './json.ts'
import { optionalPlace, placesIn } from './template.ts'

const NAME = /^\w+$/

type Slot = { name: string; optional: boolean }

/** Null for braces around anything but a name: they are plain text. */
export function slotOf(place: string): Slot | null {
  const slot = optionalPlace(place)
  return NAME.test(slot.name) ? slot : null
}

/** The slots of a value, once each. One is optional if it may be absent wherever it stands. */
export function slotsIn(value: Json): Slot[] {
  const slots = new Map<string, Slot>()
  for (const { place } of placesIn(value)) {
    const slot = slotOf(place)
    if (slot) slots.set(slot.name, { ...slot, optional: slot.optional && (slots.get(slot.name)?.optional ?? true) })
  }
  return [...slots.values()]
}

/** The parts of a request that may have slots. `idempotence_key` belongs to a tool. */
export type SlottedRequest = {
  url: string
  headers?: Readonly<Record<string, string>> | undefined
  body?: Json | undefined
  idempotence_key?: string | undefined
}

export const requestSlots = ({ url, headers = {}, body = null, idempotence_key: key }: SlottedRequest): Slot[] =>
  slotsIn([url, ...Object.values(headers), body, key ?? null])
