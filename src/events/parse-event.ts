import type { z } from 'zod'
import { byteLength } from '../base/byte-length.ts'
import { type FieldError, checkJson, fieldError, isFields } from '../base/check-json.ts'
import { limits } from '../base/limits.ts'
import type { SecretHider } from '../base/secrets.ts'
import { fromZod } from '../contract/problem.ts'
import { type Defaults, type Event, withDefaults } from '../core/event.ts'

/** `types`: those that the union knows. `scope`: set where the path or the socket decides it; an event that names another is refused. */
export type EventRules = { union: z.ZodType<Event>; types: readonly string[]; defaults: Defaults; scope?: string; secrets?: SecretHider }
export type ParsedEvent = { ok: true; event: Event } | { ok: false; reason: 'invalid' | 'unknown_type' | 'too_large'; errors: FieldError[] }

/** What withDefaults may add to an event: id, scope, source, timestamp and meta, each at its longest. */
const MOST_ADDED_BYTES = 1500

/** One event from outside, as JSON.parse left it. It never throws. */
export function parseEvent(value: unknown, { union, types, defaults, scope, secrets }: EventRules): ParsedEvent {
  if (!isFields(value)) return invalid([], 'an event is a JSON object')
  const checked = checkJson(value)
  if (!checked.ok) return { ok: false, reason: 'invalid', errors: [checked.error] }
  const { type } = value
  if (typeof type !== 'string') return invalid(['type'], `an event has a type; known: ${types.join(', ')}`)
  if (!types.includes(type)) return unknownType(type, types)
  const filled = withDefaults(value, scope === undefined ? defaults : { ...defaults, scope })
  if (scope !== undefined && filled['scope'] !== scope) return invalid(['scope'], `only events of the scope ${scope} may be sent here`)
  if (checked.max_bytes + MOST_ADDED_BYTES > limits.event_bytes) {
    const bytes = byteLength(JSON.stringify(filled))
    if (bytes > limits.event_bytes) return tooLarge(bytes)
  }
  const judged = judge(filled, union)
  return judged.ok && secrets ? withoutSecretName(judged, secrets) : judged
}

function judge(filled: Record<string, unknown>, union: z.ZodType<Event>): ParsedEvent {
  const parsed = union.safeParse(filled)
  if (!parsed.success) return { ok: false, reason: 'invalid', errors: fromZod(parsed.error) }
  // SQL functions end a text at its first NUL, so that two ids would look like one.
  for (const name of ['id', 'source'] as const) {
    if (/\p{Cc}/u.test(parsed.data[name])) return invalid([name], 'must not hold control characters')
  }
  return { ok: true, event: parsed.data }
}

/** Other texts of an event are hidden; by these it is found. */
function withoutSecretName(judged: ParsedEvent & { ok: true }, secrets: SecretHider): ParsedEvent {
  const { id, scope, meta } = judged.event
  const names = { id, scope, 'meta.trace_id': meta.trace_id }
  const found = Object.entries(names).find(([, text]) => secrets.finds(text))
  return found ? invalid(found[0].split('.'), 'holds a secret of this deployment, which is never stored: name the event otherwise') : judged
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

/**
 * The event without the secrets in its texts. What it is found by stays: events whose id, scope or trace id
 * holds a secret are refused when they are parsed.
 */
export function hideInEvent(event: Event, hider: SecretHider): Event {
  const { id, type, scope, meta } = event
  const hidden = hider.value(event)
  if (hidden === event) return event
  return { ...hidden, id, type, scope, meta: { ...hidden.meta, trace_id: meta.trace_id } }
}
