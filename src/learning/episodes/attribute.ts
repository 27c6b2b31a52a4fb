import type { Json } from '../../base/json.ts'
import type { Event } from '../../core/event.ts'
import type { EpisodeAct } from '../episode.ts'
import { fieldsOf } from '../skills/sources.ts'

/** Shorter texts occur in other texts by chance, so they have to be equal. */
const LEAST_WITHIN = 4

/**
 * Returns the acts that a turn decided on. A reply beside other acts reports them, so it is no
 * decision, except in a conversation, where somebody waits for the answer.
 */
export function decisionOf(acts: readonly EpisodeAct[], events: readonly Event[]): readonly EpisodeAct[] {
  const others = acts.filter(({ kind }) => kind !== 'reply')
  return others.length === 0 || events.some(({ type }) => type === 'ws.message') ? acts : others
}

/**
 * The acts of a turn on several events, for each of them: an act belongs to the one event that
 * holds those of its arguments that tell the events apart. Null if there is no such event.
 */
export function attributed(acts: readonly EpisodeAct[], events: readonly Event[]): EpisodeAct[][] | null {
  const found: EpisodeAct[][] = events.map(() => [])
  if (acts.length === 0) return found
  if (events.length === 1) return [[...acts]]
  const held = events.map((event) => Array.from(fieldsOf(ownFields(event)).values()))
  for (const act of acts) {
    const owner = ownerOf(Array.from(fieldsOf(act.input).values()), held)
    if (owner === null) return null
    found[owner]?.push(act)
  }
  return found
}

function ownerOf(values: readonly Json[], held: readonly (readonly Json[])[]): number | null {
  let owners = Array.from(held.keys())
  let tells = false
  for (const value of values) {
    const holding = new Set(held.flatMap((fields, index) => (fields.some((one) => holds(one, value)) ? [index] : [])))
    if (holding.size === 0 || holding.size === held.length) continue
    tells = true
    owners = owners.filter((index) => holding.has(index))
  }
  const [owner, ...others] = owners
  return tells && owner !== undefined && others.length === 0 ? owner : null
}

function holds(field: Json, value: Json): boolean {
  if (field === value) return true
  if (typeof field !== 'string' || (typeof value !== 'string' && typeof value !== 'number')) return false
  const text = String(value)
  return text.length >= LEAST_WITHIN && field.includes(text)
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
