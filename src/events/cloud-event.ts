import { createHash } from 'node:crypto'
import { isFields, type Fields, fieldError, type FieldError } from '../base/check-json.ts'
import { type EventRules, type ParsedEvent, parseEvent } from './parse-event.ts'
import type { Clean } from '../base/secrets.ts'
import type { Event } from '../core/event.ts'
import { traceContextOf } from './traceparent.ts'

const envelope = ['id', 'type', 'scope', 'source', 'timestamp', 'meta'] as const

/** Parses a CloudEvents 1.0 envelope: `subject` is the scope, `data` has the type's fields. */
export function parseCloudEvent(value: unknown, rules: EventRules): ParsedEvent {
  if (!isFields(value)) return invalid([fieldError([], 'a CloudEvent is a JSON object')])
  const flaws = flawsOf(value)
  if (flaws.length > 0) return invalid(flaws)
  const trace = typeof value['traceparent'] === 'string' ? traceContextOf(value['traceparent'], value['tracestate']) : undefined
  const parsed = parseEvent(fromEnvelope(value), trace ? { ...rules, defaults: { ...rules.defaults, trace } } : rules)
  if (parsed.ok) return { ok: true, event: identified(parsed.event, value['source']) }
  return { ...parsed, errors: parsed.errors.map(({ path, message }) => ({ path: cloudPath(path), message })) }
}

/**
 * Makes the id from the source and the id that was sent: together they identify a CloudEvent.
 * Elsewhere an id is one event in its scope, whatever the source is.
 */
function identified(event: Clean<Event>, source: unknown): Clean<Event> {
  const hash = createHash('sha256')
    .update(JSON.stringify([source, event.id]))
    .digest('hex')
  return { ...event, id: `ce:${hash.slice(0, 32)}`, meta: { ...event.meta, sent_id: event.id } }
}

function flawsOf(cloud: Fields): FieldError[] {
  const flaws: FieldError[] = []
  if (cloud['specversion'] !== '1.0') flaws.push(fieldError(['specversion'], 'must be "1.0"'))
  for (const name of ['id', 'source', 'type']) {
    if (typeof cloud[name] !== 'string' || cloud[name] === '') flaws.push(fieldError([name], 'is required in a CloudEvent, as a string'))
  }
  if (cloud['data_base64'] !== undefined) {
    flaws.push(fieldError(['data_base64'], 'binary data is not supported: send a JSON object, whose fields become the fields of the type'))
  }
  const { data } = cloud
  if (data === undefined || data === null) return flaws
  if (!isFields(data)) return [...flaws, fieldError(['data'], 'must be a JSON object, whose fields become the fields of the type')]
  const taken = envelope.filter((name) => Object.hasOwn(data, name))
  return [...flaws, ...taken.map((name) => fieldError(['data', name], 'is a reserved name, which every event has: rename it'))]
}

function fromEnvelope(cloud: Fields): Fields {
  const { id, type, source, subject, time, data } = cloud
  return {
    ...(isFields(data) ? data : {}),
    id,
    type,
    source,
    ...(subject === undefined || subject === null ? {} : { scope: subject }),
    ...(time === undefined || time === null ? {} : { timestamp: time }),
  }
}

/** The path of a field in the sender's CloudEvent. */
function cloudPath(path: string): string {
  if (path === '' || path === 'id' || path === 'type' || path === 'source') return path
  if (path === 'scope') return 'subject'
  if (path === 'timestamp') return 'time'
  return path.startsWith('[') ? `data${path}` : `data.${path}`
}

const invalid = (errors: FieldError[]): ParsedEvent => ({ ok: false, reason: 'invalid', errors })
