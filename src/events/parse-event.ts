import type { z } from 'zod'
import { byteLength } from '../base/json.ts'
import { type FieldError, checkJson, fieldError, isFields } from '../base/check-json.ts'
import { limits } from '../base/limits.ts'
import type { Clean, SecretHider } from '../base/secrets.ts'
import { APPROVAL_ENDED } from '../contract/approval-event.ts'
import { MODEL_ASKED } from '../contract/model-asked.ts'
import { fromZod } from '../contract/problem.ts'
import type { SenderRole } from '../contract/principal.ts'
import { type Defaults, type Event, withDefaults, eventType } from '../core/event.ts'
import { traceContextOf } from './traceparent.ts'
import { envelope } from '../contract/settings/event-types.ts'
import type { Settings } from '../contract/settings/settings.ts'
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

export type EventRules = {
  union: z.ZodType<Event>
  types: readonly string[]
  defaults: Defaults
  /** The sender of the events, whatever their `meta` says. */
  sender?: string | undefined
  /** The role of the key that sends them. */
  role?: SenderRole | undefined
  /** Somebody hears what is replied to them. */
  heard?: boolean
  /** Set if the path or socket determines it: an event for another is rejected. */
  scope?: string
  secrets: SecretHider
  /** Types beside the deployment's. */
  declared?: DeclaredTypes
}
type Refused = { ok: false; reason: 'invalid' | 'unknown_type' | 'too_large'; errors: FieldError[] }
export type ParsedEvent = { ok: true; event: Clean<Event> } | Refused
/** An event that was not searched for secrets. */
type JudgedEvent = { ok: true; event: Event } | Refused

/** Maximum size of the id, scope, source, timestamp and meta that withDefaults may add. */
const MOST_ADDED_BYTES = 1500

/**
 * Validates one event of a caller, and searches it for secrets: no later step searches it again. It
 * never throws.
 */
export function parseEvent(value: unknown, { secrets, ...rules }: EventRules): ParsedEvent {
  const judged = judgeEvent(value, rules)
  if (!judged.ok) return judged
  const clean = cleanEvent(judged.event, secrets)
  const held = clean === judged.event ? undefined : namedIn(judged.event, secrets)
  return held ? invalid(held.split('.'), 'contains a secret of this deployment, which is never stored') : { ok: true, event: clean }
}

/** Validates an event that the scope itself makes, and searches when it enters. It never throws. */
export function judgeEvent(
  value: unknown,
  { union, types, defaults, sender, role, heard = false, scope, declared }: Omit<EventRules, 'secrets'>,
): JudgedEvent {
  if (!isFields(value)) return invalid([], 'an event must be a JSON object')
  const checked = checkJson(value)
  if (!checked.ok) return { ok: false, reason: 'invalid', errors: [checked.error] }
  const { type } = value
  if (typeof type !== 'string') return invalid(['type'], `${noType(value)}; known: ${types.join(', ')}`)
  if (type === APPROVAL_ENDED || type === MODEL_ASKED) return invalid(['type'], `${type} is made by the scope alone`)
  const own = types.includes(type) ? union : declared?.get(type)
  if (!own) return unknownType(type, [...types, ...(declared?.keys() ?? [])])
  // Queue messages and socket frames have no headers of their own.
  const trace = typeof value['traceparent'] === 'string' ? traceContextOf(value['traceparent'], value['tracestate']) : undefined
  const filled = withDefaults(value, { ...defaults, ...(scope !== undefined && { scope }), ...(trace && { trace }) })
  if (scope !== undefined && filled['scope'] !== scope) return invalid(['scope'], `must be ${scope}, the scope of this endpoint`)
  if (checked.max_bytes + MOST_ADDED_BYTES > limits.event_bytes) {
    const bytes = byteLength(JSON.stringify(filled))
    if (bytes > limits.event_bytes) return tooLarge(bytes)
  }
  const judged = judge(filled, own)
  if (!judged.ok) return judged
  // The schema has removed what the input says about its sender.
  const known = { ...(sender !== undefined && { sender }), ...(role && { role }), ...(heard && { heard: true as const }) }
  return { ok: true, event: { ...judged.event, meta: { ...judged.event.meta, ...known } } }
}

/** The refusal of an event without a type, such as the object around a batch. */
const noType = ({ events }: Record<string, unknown>): string =>
  Array.isArray(events) ? 'type is required; send several events as an array, without an object around it' : 'type is required'

function judge(filled: Record<string, unknown>, union: z.ZodType<Event>): JudgedEvent {
  const parsed = union.safeParse(filled)
  if (!parsed.success) return { ok: false, reason: 'invalid', errors: fromZod(parsed.error) }
  // SQL functions truncate a text at its first NUL, which would make two ids equal.
  for (const name of ['id', 'source'] as const) {
    if (/\p{Cc}/u.test(parsed.data[name])) return invalid([name], 'must not contain control characters')
  }
  return { ok: true, event: parsed.data }
}

/** The field with a secret among those that identify the event: secrets in others are masked. */
function namedIn({ id, scope, meta }: Event, secrets: SecretHider): string | undefined {
  const names = { id, scope, 'meta.trace_id': meta.trace_id }
  return Object.entries(names).find(([, text]) => secrets.finds(text))?.[0]
}

function invalid(path: string[], message: string): Refused {
  return { ok: false, reason: 'invalid', errors: [fieldError(path, message)] }
}

function unknownType(type: string, types: readonly string[]): Refused {
  const message = `unknown type ${JSON.stringify(type.slice(0, 128))}; known: ${types.join(', ')}`
  return { ok: false, reason: 'unknown_type', errors: [fieldError(['type'], message)] }
}

function tooLarge(bytes: number): Refused {
  const message = `the event takes ${bytes} bytes as JSON; at most ${limits.event_bytes} are allowed`
  return { ok: false, reason: 'too_large', errors: [fieldError([], message)] }
}

/** Masks secrets in an event's texts. The fields that identify it stay as they are. */
export function cleanEvent(event: Event, secrets: SecretHider): Clean<Event> {
  if (!secrets.finds(JSON.stringify(event))) return event as Clean<Event>
  const hidden = secrets.value(event)
  const { id, type, scope, meta } = event
  return { ...hidden, id, type, scope, meta: { ...hidden.meta, trace_id: meta.trace_id } } as Clean<Event>
}
