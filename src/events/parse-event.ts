import type { z } from 'zod'
import { byteLength } from '../base/byte-length.ts'
import { type FieldError, checkJson, fieldError, isFields } from '../base/check-json.ts'
import { limits } from '../base/limits.ts'
import type { SecretHider } from '../base/secrets.ts'
import { APPROVAL_ENDED } from '../features/approvals/contract/approval-event.ts'
import { fromZod } from '../contract/problem.ts'
import { type Defaults, type Event, withDefaults } from '../core/event.ts'
import type { DeclaredTypes } from './declared-types.ts'
import { traceContextOf } from './traceparent.ts'

export type EventRules = {
  union: z.ZodType<Event>
  types: readonly string[]
  defaults: Defaults
  /** The sender of the events, whatever their `meta` says. */
  sender?: string | undefined
  /** Set if the path or socket determines it: an event for another is rejected. */
  scope?: string
  secrets?: SecretHider
  /** Types beside the deployment's. */
  declared?: DeclaredTypes
}
export type ParsedEvent = { ok: true; event: Event } | { ok: false; reason: 'invalid' | 'unknown_type' | 'too_large'; errors: FieldError[] }

/** Maximum size of the id, scope, source, timestamp and meta that withDefaults may add. */
const MOST_ADDED_BYTES = 1500

/** The sender of events that arrive with a key, also over a socket that it opened. */
export const senderOf = (key_id: string): string => `key:${key_id}`

/** Validates one parsed event. It never throws. */
export function parseEvent(value: unknown, { union, types, defaults, sender, scope, secrets, declared }: EventRules): ParsedEvent {
  if (!isFields(value)) return invalid([], 'an event must be a JSON object')
  const checked = checkJson(value)
  if (!checked.ok) return { ok: false, reason: 'invalid', errors: [checked.error] }
  const { type } = value
  if (typeof type !== 'string') return invalid(['type'], `type is required; known: ${types.join(', ')}`)
  if (type === APPROVAL_ENDED) return invalid(['type'], `${type} is made by the scope alone`)
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
  const judged = sentBy(judge(filled, own), sender)
  return judged.ok && secrets ? withoutSecretName(judged, secrets) : judged
}

function judge(filled: Record<string, unknown>, union: z.ZodType<Event>): ParsedEvent {
  const parsed = union.safeParse(filled)
  if (!parsed.success) return { ok: false, reason: 'invalid', errors: fromZod(parsed.error) }
  // SQL functions truncate a text at its first NUL, which would make two ids equal.
  for (const name of ['id', 'source'] as const) {
    if (/\p{Cc}/u.test(parsed.data[name])) return invalid([name], 'must not contain control characters')
  }
  return { ok: true, event: parsed.data }
}

/** The schema has removed a sender that the input names. */
function sentBy(judged: ParsedEvent, sender: string | undefined): ParsedEvent {
  if (!judged.ok || sender === undefined) return judged
  return { ok: true, event: { ...judged.event, meta: { ...judged.event.meta, sender } } }
}

/** Secrets in other texts are masked, but these fields identify the event. */
function withoutSecretName(judged: ParsedEvent & { ok: true }, secrets: SecretHider): ParsedEvent {
  const { id, scope, meta } = judged.event
  const names = { id, scope, 'meta.trace_id': meta.trace_id }
  const found = Object.entries(names).find(([, text]) => secrets.finds(text))
  return found ? invalid(found[0].split('.'), 'contains a secret of this deployment, which is never stored') : judged
}

function invalid(path: string[], message: string): ParsedEvent {
  return { ok: false, reason: 'invalid', errors: [fieldError(path, message)] }
}

function unknownType(type: string, types: readonly string[]): ParsedEvent {
  const message = `unknown type ${JSON.stringify(type.slice(0, 128))}; known: ${types.join(', ')}`
  return { ok: false, reason: 'unknown_type', errors: [fieldError(['type'], message)] }
}

function tooLarge(bytes: number): ParsedEvent {
  const message = `the event takes ${bytes} bytes as JSON; at most ${limits.event_bytes} are allowed`
  return { ok: false, reason: 'too_large', errors: [fieldError([], message)] }
}

/** Masks secrets in an event's texts. Parsing rejects secrets in the id, scope and trace id. */
export function hideInEvent(event: Event, hider: SecretHider): Event {
  const { id, type, scope, meta } = event
  const hidden = hider.value(event)
  if (hidden === event) return event
  return { ...hidden, id, type, scope, meta: { ...hidden.meta, trace_id: meta.trace_id } }
}
