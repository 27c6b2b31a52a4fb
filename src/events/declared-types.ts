import type { z } from 'zod'
import { envelope } from '../contract/settings/event-types.ts'
import type { Settings } from '../contract/settings/settings.ts'
import { eventType, type Event } from '../core/event.ts'
import { judgeOf } from '../base/json-schema.ts'

/** The event types that a scope's settings declare: each with the schema of a whole event. */
export type DeclaredTypes = ReadonlyMap<string, z.ZodType<Event>>

const NONE: DeclaredTypes = new Map()
const known = new WeakMap<object, DeclaredTypes>()

/** Compiled once for each value of the setting `event_types`. */
export function declaredTypes(types: Settings['event_types']): DeclaredTypes {
  if (!types) return NONE
  const compiled = known.get(types) ?? new Map(Object.entries(types).map(([type, schema]) => [type, whole(type, schema)]))
  known.set(types, compiled)
  return compiled
}

/** Compiled from the text of another isolate, once for each text. */
export function declaredTypesFrom(text: string): DeclaredTypes {
  const types = texts.get(text) ?? (JSON.parse(text) as NonNullable<Settings['event_types']>)
  texts.delete(text)
  texts.set(text, types)
  const [oldest] = texts.keys()
  if (texts.size > MOST_TEXTS && oldest !== undefined) texts.delete(oldest)
  return declaredTypes(types)
}
const texts = new Map<string, NonNullable<Settings['event_types']>>()
const MOST_TEXTS = 100

/** The type's schema judges its own fields; defaults in it are not applied. */
function whole(type: string, schema: object): z.ZodType<Event> {
  const judge = judgeOf(schema)
  return eventType(type, {})
    .loose()
    .superRefine((event, context) => {
      const fields = Object.fromEntries(Object.entries(event).filter(([name]) => !envelope.some((taken) => taken === name)))
      for (const issue of judge(fields)) context.addIssue({ ...issue, code: 'custom' })
    })
}
