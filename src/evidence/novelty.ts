import { senderOf } from '../contract/sender.ts'
import { isJsonFields } from '../base/json.ts'
import { numbersIn, type NumberReading } from './numbers.ts'
import { emptyTaught, type TaughtShapes, teachShape, unseenShare } from './drift.ts'

/** The parts of an event that may be new to a proof: its sender, and the numbers in its fields. */
export type EventTraits = { sender: string; numbers: readonly NumberReading[] }
/** Numbers at one place. `stretched`: how often a later one was beyond those before it. */
export type Range = { low: number; high: number; n: number; stretched: number }
/** The traits of the events that a proof was judged on. `rare`: numbers at further places. */
export type TaughtValues = { senders: TaughtShapes; numbers: Record<string, Range>; rare: number }

export const noValues = (): TaughtValues => ({ senders: emptyTaught(), numbers: {}, rare: 0 })

/** Fields of an event that name it, beside its type. */
export const NAMING: ReadonlySet<string> = new Set(['id', 'timestamp', 'scope', 'source', 'meta', 'request_hash'])
const MOST_PLACES = 100
/** Events, or numbers at a place, before a new one means something. */
const SETTLED = 20
/** A new sender or place is usual if this share of them was seen once. */
const USUAL = 0.05

type Sent = { source: string; meta: { sender?: string | undefined } }

/** The sender is the key that an event was sent with, as for what is learned. */
export function traitsOf(event: Sent & object): EventTraits {
  const numbers = Object.entries(event).flatMap(([name, value]) => (NAMING.has(name) || name === 'type' ? [] : readingsOf(name, value)))
  return { sender: senderOf(event), numbers }
}

const DEEPEST = 3

function readingsOf(path: string, value: unknown, depth = 0): NumberReading[] {
  if (typeof value === 'number') return [{ place: path, value }]
  if (typeof value === 'string') return numbersIn(value).map((one) => ({ ...one, place: `${path} ${one.place}` }))
  if (!isJsonFields(value) || depth >= DEEPEST) return []
  return Object.entries(value).flatMap(([name, inner]) => readingsOf(`${path}.${name}`, inner, depth + 1))
}

export function teachValues({ senders, numbers, rare }: TaughtValues, traits: EventTraits): TaughtValues {
  const taught = { senders: teachShape(senders, traits.sender), numbers: { ...numbers }, rare }
  for (const { place, value } of traits.numbers) {
    const known = taught.numbers[place]
    if (known) taught.numbers[place] = stretch(known, value)
    else if (Object.keys(taught.numbers).length < MOST_PLACES) taught.numbers[place] = { low: value, high: value, n: 1, stretched: 0 }
    else taught.rare += 1
  }
  return taught
}

const stretch = ({ low, high, n, stretched }: Range, value: number): Range => ({
  low: Math.min(low, value),
  high: Math.max(high, value),
  n: n + 1,
  stretched: stretched + (n >= SETTLED && (value < low || value > high) ? 1 : 0),
})

/** The part of an event that the proof has not seen, in words, or null. */
export function noveltyOf({ senders, numbers, rare }: TaughtValues, traits: EventTraits): string | null {
  const events = Object.values(senders.taught).reduce((sum, count) => sum + count, senders.rare)
  if (events < SETTLED) return null
  if (!Object.hasOwn(senders.taught, traits.sender) && unseenShare(senders) <= USUAL) return 'its sender is new'
  for (const { place, value } of traits.numbers) {
    const known = Object.hasOwn(numbers, place) ? numbers[place] : undefined
    if (known && isBounded(known) && (value < known.low || value > known.high))
      return `${value} at ${place} is beyond ${known.low} to ${known.high}`
    if (!known && onceShare(numbers, rare) <= USUAL) return `it has a number at ${place}`
  }
  return null
}

/** An id or a counter goes beyond its range again and again; a measure seldom. */
const isBounded = ({ n, stretched }: Range): boolean =>
  n >= SETTLED && stretched <= MOST_STRETCHED.base + (n - SETTLED) * MOST_STRETCHED.share
const MOST_STRETCHED = { base: 3, share: 0.1 } as const

const onceShare = (numbers: TaughtValues['numbers'], rare: number): number =>
  unseenShare({ taught: Object.fromEntries(Object.entries(numbers).map(([place, { n }]) => [place, n])), rare })
