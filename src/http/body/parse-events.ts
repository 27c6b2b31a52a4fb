import type { Context } from 'hono'
import { isFields, type FieldError, type Fields } from '../../base/check-json.ts'
import { limits } from '../../base/limits.ts'
import { deploymentHider, type Clean } from '../../base/secrets.ts'
import type { Problem } from '../../contract/problem.ts'
import { refusal } from '../problems/refusals.ts'
import { coversScope } from '../../contract/principal.ts'
import { DEFAULT_SCOPE, scopeName, type Event } from '../../core/event.ts'
import { parseEvent, senderOf, type EventRules, type ParsedEvent } from '../../events/parse-event.ts'
import { declaredTypesFrom, type DeclaredTypes } from '../../events/declared-types.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import type { Env } from '../../env.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { type Form, type BodyItem, formOf } from './event-forms.ts'
import { readBody } from './read-body.ts'

export { parseEvent, type EventRules, type ParsedEvent } from '../../events/parse-event.ts'

type Failure = { reason: 'malformed' | Extract<ParsedEvent, { ok: false }>['reason']; errors: FieldError[] }

/** Parses the events of a request. Throws a Problem that lists every invalid event. */
export async function readEvents(request: Request, rules: EventRules, asked?: Asking): Promise<Clean<Event>[]> {
  const form = formOf(request.headers)
  const rows = form.rows(await readBody(request))
  const trace = traceContextOf(request.headers.get('traceparent'), request.headers.get('tracestate'))
  const declared = asked ? await declaredFor({ rows, form }, rules, asked) : new Map<string, DeclaredTypes>()
  return await readRows(rows, form, { ...rules, defaults: { ...rules.defaults, trace } }, declared)
}

type Asking = Pick<Context<AuthEnv>, 'env' | 'var'>

/** Scopes of one request that are asked for types that the deployment does not know. */
const MOST_ASKED = 8

/** The types that the scopes of the events declare, asked only for events of unknown types. */
async function declaredFor(
  { rows, form }: { rows: readonly BodyItem[]; form: Form },
  { types, scope }: EventRules,
  { env, var: { principal } }: Asking,
) {
  const strange = rows.flatMap((row) => (row.ok && isFields(row.value) && !types.includes(String(row.value['type'])) ? [row.value] : []))
  const scopes = new Set(strange.map((value) => scope ?? scopeIn(value, form)))
  const covered = Array.from(scopes).filter((name) => scopeName.safeParse(name).success && coversScope(principal, name))
  const found = await Promise.all(
    covered.slice(0, MOST_ASKED).map(async (name) => [name, declaredTypesFrom(await env.SCOPE.getByName(name).eventTypes())] as const),
  )
  return new Map(found)
}

function scopeIn(value: Fields, form: Form): string {
  const scope = value[form.scope] ?? DEFAULT_SCOPE
  return typeof scope === 'string' ? scope : ''
}

/** The rules with the types that the scope declares, which is asked only if `types` need them. */
export async function withTypesOf(scope: string, types: readonly unknown[], rules: EventRules, env: Env): Promise<EventRules> {
  if (types.every((type) => typeof type !== 'string' || rules.types.includes(type))) return rules
  return { ...rules, declared: declaredTypesFrom(await env.SCOPE.getByName(scope).eventTypes()) }
}

/** Parses one event that a route makes from its body. */
export function readEvent(value: object, rules: EventRules): Clean<Event> {
  const parsed = parseEvent(value, rules)
  if (!parsed.ok) throw refused([parsed], 1, [...rules.types, ...(rules.declared?.keys() ?? [])])
  return parsed.event
}

async function readRows(
  rows: BodyItem[],
  form: Form,
  rules: EventRules,
  declared: ReadonlyMap<string, DeclaredTypes>,
): Promise<Clean<Event>[]> {
  const events: Clean<Event>[] = []
  const failures: Failure[] = []
  for (const [index, row] of rows.entries()) {
    // A schema of a scope may take some milliseconds for each event.
    if (declared.size > 0 && index > 0) await scheduler.wait(0)
    const types = row.ok && isFields(row.value) ? declared.get(rules.scope ?? scopeIn(row.value, form)) : undefined
    const parsed = row.ok ? form.parse(row.value, types ? { ...rules, declared: types } : rules) : malformedLine(row.message)
    if (parsed.ok) events.push(parsed.event)
    else failures.push({ reason: parsed.reason, errors: parsed.errors.map((error) => located(error, row)) })
  }
  if (failures.length > 0)
    throw refused(failures, rows.length, [...rules.types, ...new Set(Array.from(declared.values(), (types) => [...types.keys()]).flat())])
  return events
}

const malformedLine = (message: string) => ({ ok: false as const, reason: 'malformed' as const, errors: [{ path: '', message }] })

function located({ path, message }: FieldError, { index, line }: BodyItem): FieldError {
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

/** The rules for reading the events of a caller. `scope`: set if the path decides it. */
export const eventRules = ({ env, var: { principal, agents } }: Pick<Context<AuthEnv>, 'env' | 'var'>, scope?: string): EventRules => ({
  union: agents.eventSchema,
  types: agents.eventTypes,
  defaults: { now: Date.now(), source: principal.name },
  sender: senderOf(principal.key_id),
  secrets: deploymentHider(env),
  ...(scope === undefined ? {} : { scope }),
})
