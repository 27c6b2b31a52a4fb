import type { Context } from 'hono'
import type { FieldError } from '../../base/check-json.ts'
import { limits } from '../../base/limits.ts'
import { deploymentHider } from '../../base/secrets.ts'
import type { Problem } from '../../contract/problem.ts'
import { refusal } from '../problems/refusals.ts'
import type { Event } from '../../core/event.ts'
import { parseEvent, senderOf, type EventRules, type ParsedEvent } from '../../events/parse-event.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { type Form, type Row, formOf } from './event-forms.ts'
import { readBody } from './read-body.ts'

export { parseEvent, type EventRules, type ParsedEvent } from '../../events/parse-event.ts'

type Failure = { reason: 'malformed' | Extract<ParsedEvent, { ok: false }>['reason']; errors: FieldError[] }

/** Parses the events of a request. Throws a Problem that lists every invalid event. */
export async function readEvents(request: Request, rules: EventRules): Promise<Event[]> {
  const form = formOf(request.headers.get('Content-Type'))
  const rows = form.rows(await readBody(request))
  const trace = traceContextOf(request.headers.get('traceparent'), request.headers.get('tracestate'))
  return readRows(rows, form, { ...rules, defaults: { ...rules.defaults, trace } })
}

/** Parses one event that a route makes from its body. */
export function readEvent(value: object, rules: EventRules): Event {
  const parsed = parseEvent(value, rules)
  if (!parsed.ok) throw refused([parsed], 1, rules.types)
  return parsed.event
}

function readRows(rows: Row[], form: Form, rules: EventRules): Event[] {
  const events: Event[] = []
  const failures: Failure[] = []
  for (const row of rows) {
    const parsed = row.ok ? form.parse(row.value, rules) : malformedLine(row.message)
    if (parsed.ok) events.push(parsed.event)
    else failures.push({ reason: parsed.reason, errors: parsed.errors.map((error) => located(error, row)) })
  }
  if (failures.length > 0) throw refused(failures, rows.length, rules.types)
  return events
}

const malformedLine = (message: string) => ({ ok: false as const, reason: 'malformed' as const, errors: [{ path: '', message }] })

function located({ path, message }: FieldError, { index, line }: Row): FieldError {
  return { ...(index === null ? {} : { index }), path, message: line === null ? message : `line ${line}: ${message}` }
}

function refused(failures: Failure[], count: number, types: readonly string[]): Problem {
  const errors = failures.flatMap((failure) => failure.errors)
  const whole = count === 1 ? '' : ` ${failures.length} of ${count} events are invalid, so none was accepted.`
  const reasons = new Set(failures.map(({ reason }) => reason))
  if (reasons.has('too_large')) {
    const which = failures.filter(({ reason }) => reason === 'too_large').flatMap((failure) => failure.errors.map(place))
    return refusal('event-too-large', `Too large: ${which.join(', ')}; at most ${limits.event_bytes} bytes each.${whole}`, { errors })
  }
  if (reasons.size === 1 && reasons.has('unknown_type'))
    return refusal('unknown-type', `The known types are: ${types.join(', ')}.${whole}`, { errors })
  const kind = reasons.size === 1 && reasons.has('malformed') ? 'malformed-body' : 'invalid-event'
  return refusal(kind, `${place(errors[0])}: ${errors[0]?.message ?? ''}.${whole}`, { errors })
}

function place(error: FieldError | undefined): string {
  const path = error?.path ?? ''
  if (error?.index === undefined) return path === '' ? 'the event' : path
  return path === '' ? `event ${error.index}` : `event ${error.index}, ${path}`
}

/** How the events of a caller are read. `scope`: where the path decides it. */
export const eventRules = ({ env, var: { principal, agents } }: Pick<Context<AuthEnv>, 'env' | 'var'>, scope?: string): EventRules => ({
  union: agents.eventSchema,
  types: agents.eventTypes,
  defaults: { now: Date.now(), source: principal.name },
  sender: senderOf(principal.key_id),
  secrets: deploymentHider(env),
  ...(scope === undefined ? {} : { scope }),
})
