import { limits } from '../../base/limits.ts'
import { JsonShape } from '../../base/json-shape.ts'
import { invalid, refusal } from '../problems/refusals.ts'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../../env.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { checkJson, isFields, type FieldError, type Fields, parseJson } from '../../base/check-json.ts'
import { deploymentHider, deploymentSecrets, secretHider, type Clean } from '../../base/secrets.ts'
import { parseCloudEvent } from '../../events/cloud-event.ts'
import { type EventRules, type ParsedEvent, parseEvent, declaredTypesFrom, type DeclaredTypes } from '../../events/parse-event.ts'
import { senderOfKey } from '../../contract/sender.ts'
import type { Problem } from '../../contract/problem.ts'
import type { Context } from 'hono'
import { coversScope, senderRole } from '../../contract/principal.ts'
import { DEFAULT_SCOPE, scopeName, type Event } from '../../core/event.ts'
import { traceContextOf } from '../../events/traceparent.ts'

/** Bytes of an oversized body that are drained before the sender is cut off: Cloudflare's limit. */
const MOST_DRAINED_BYTES = 100 * limits.body_bytes

type Reading = { most: number; advice: string; is_gzip: boolean; shape?: JsonShape }
const standard: Reading = { most: limits.body_bytes, advice: 'Send the events in several requests.', is_gzip: false }

/** A file may be compressed: the limit holds for its content. */
const readFile = (request: Request): Promise<string> =>
  readBody(request, {
    most: limits.file_bytes,
    advice: 'Replay a larger trace where it was recorded.',
    is_gzip: request.headers.get('Content-Encoding')?.toLowerCase() === 'gzip',
    shape: new JsonShape(),
  })

export async function readBody(request: Request, reading: Reading = standard): Promise<string> {
  if (Number(request.headers.get('Content-Length')) > reading.most) throw tooLarge(reading)
  const body = reading.is_gzip ? request.body?.pipeThrough(new DecompressionStream('gzip')) : request.body
  const chunks = body ? await readChunks(body, reading) : []
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(join(chunks))
  } catch {
    throw refusal('invalid-utf8', 'The body is not valid UTF-8. Send it uncompressed and in UTF-8.')
  }
}

async function readChunks(body: ReadableStream<Uint8Array>, reading: Reading): Promise<Uint8Array[]> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read().catch(cutShort)
    if (done) return chunks
    bytes += value.byteLength
    if (bytes > reading.most) {
      // A little gzip may be much to drain.
      await (reading.is_gzip ? reader.cancel() : drain(reader))
      throw tooLarge(reading)
    }
    const flaw = reading.shape?.add(value) ?? null
    if (flaw !== null) {
      await (reading.is_gzip ? reader.cancel() : drain(reader))
      throw invalid(`The file ${flaw}. ${reading.advice}`)
    }
    chunks.push(value)
  }
}

/** Drains the body, because locally a response to a partly read one breaks the next request. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  let left = MOST_DRAINED_BYTES
  while (left > 0) {
    const { done, value } = await reader.read().catch(cutShort)
    if (done) return
    left -= value.byteLength
  }
  // Not awaited: a sender that keeps sending must not delay the response.
  void reader.cancel().catch(() => undefined)
}

function join(chunks: Uint8Array[]): Uint8Array {
  const [first] = chunks
  if (first !== undefined && chunks.length === 1) return first
  const whole = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

function cutShort(): never {
  throw refusal('body-cut-short', 'The body could not be read to its end.')
}

const tooLarge = ({ most, advice }: Reading) => refusal('body-too-large', `A body takes at most ${most} bytes. ${advice}`)

const JSON_TYPE = /^application\/json *(;|$)/i

/**
 * Reads and checks a JSON body before the route's schema. Hono's validator accepts other types as
 * `{}`, has no size limit, and does not locate errors.
 */
const body = ({ optional = false, hides = false }: { optional?: boolean; hides?: boolean }) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    const type = c.req.header('Content-Type')
    const sent = await readBody(c.req.raw)
    const text = hides ? deploymentHider(c.env).text(sent) : sent
    const absent = optional && text.trim() === ''
    if (!absent) check(type, text)
    refuseSecrets(c.env, text)
    // Hono's validator reads this cache first, and assumes `{}` without a Content-Type.
    const cache: { text?: unknown } = c.req.bodyCache
    cache.text = Promise.resolve(absent && type !== undefined ? '{}' : text)
    await next()
  })

export const jsonBody = body({})
export const optionalJsonBody = body({ optional: true })
/** A report by a machine, such as an error text: secrets are masked instead of rejected. */
export const reportBody = body({ hides: true })

/** An exported file, which may be larger and compressed. It holds no secret of a deployment. */
export const fileBody = createMiddleware<AuthEnv>(async (c, next) => {
  const text = await readFile(c.req.raw)
  check(c.req.header('Content-Type'), text)
  const cache: { text?: unknown } = c.req.bodyCache
  cache.text = Promise.resolve(text)
  await next()
})

export function check(type: string | undefined, text: string): void {
  if (!JSON_TYPE.test(type ?? '')) {
    const detail = 'Send the body as JSON, with Content-Type: application/json.'
    throw refusal('unsupported-media-type', detail, { headers: { Accept: 'application/json' } })
  }
  const parsed = parseJson(text)
  if (!parsed.ok) throw refusal('malformed-body', text.trim() === '' ? 'The body is empty.' : `The body is not JSON: ${parsed.message}.`)
  const json = checkJson(parsed.value)
  if (!json.ok) throw invalid(`The body is invalid: ${`${json.error.path} ${json.error.message}`.trim()}.`, [json.error])
}

/** Rejects secrets in what people send. Events are masked instead. */
function refuseSecrets(env: Env, text: string): void {
  if (!deploymentHider(env).finds(text)) return
  const named = deploymentSecrets(env).find(({ value }) => secretHider([value]).finds(text))
  const held = named ? `the value of the deployment's secret ${named.name}` : 'an API key'
  throw invalid(
    `The body holds ${held}, which is never stored or shown. ` +
      'Name the secret instead: in secret_headers of a tool, or as {"secret": "REFLEX_TOOL_…"} on the blackboard.',
    [],
  )
}

/** An event of a body, not yet validated. `index` is null if the body is a single event. */
type BodyItem = { index: number | null; line: number | null } & ({ ok: true; value: unknown } | { ok: false; message: string })
/** `scope` is the field that names an event's scope. */
type Form = {
  scope: 'scope' | 'subject'
  rows: (text: string) => BodyItem[]
  parse: (value: unknown, rules: EventRules) => ParsedEvent
}

const forms: ReadonlyMap<string, Form> = new Map([
  ['application/json', { scope: 'scope', rows: oneOrMany, parse: parseEvent }],
  ['application/x-ndjson', { scope: 'scope', rows: lines, parse: parseEvent }],
  ['application/cloudevents+json', { scope: 'subject', rows: one, parse: parseCloudEvent }],
  ['application/cloudevents-batch+json', { scope: 'subject', rows: many, parse: parseCloudEvent }],
])

/** The form of a request's body, by its headers. */
function formOf(headers: Headers): Form {
  const contentType = headers.get('Content-Type')
  const [media = '', ...parameters] = (contentType ?? '').toLowerCase().split(';')
  if (headers.has('ce-specversion') && !media.trim().startsWith('application/cloudevents')) return binaryForm(media.trim(), headers)
  const form = forms.get(media.trim())
  const charset = parameters.map((parameter) => /^\s*charset="?([^"\s]*)"?\s*$/.exec(parameter)?.[1]).find((name) => name !== undefined)
  if (form && (charset === undefined || ['utf-8', 'utf8', 'us-ascii'].includes(charset))) return form
  const accepted = [...forms.keys()].join(', ')
  const detail = `Send a Content-Type, in UTF-8, that is one of: ${accepted}.`
  throw refusal('unsupported-media-type', detail, { headers: { Accept: accepted } })
}

/** A CloudEvent in binary mode: its attributes are headers, and the body is its data. */
function binaryForm(media: string, headers: Headers): Form {
  if (media !== '' && !/^application\/(?:[\w.-]+\+)?json$/.test(media)) {
    const detail = 'The data of a CloudEvent in binary mode is a JSON object, with Content-Type: application/json.'
    throw refusal('unsupported-media-type', detail, { headers: { Accept: 'application/json' } })
  }
  const attributes = Object.fromEntries(
    Array.from(headers).flatMap(([name, value]) => (name.startsWith('ce-') ? [[name.slice('ce-'.length), decoded(name, value)]] : [])),
  )
  const rows = (text: string): BodyItem[] => [single(text.trim() === '' ? attributes : { ...attributes, data: whole(text) })]
  return { scope: 'subject', rows, parse: parseCloudEvent }
}

/** Values may be quoted, and are percent-encoded beyond ASCII. */
function decoded(name: string, value: string): string {
  const text = /^".*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value
  try {
    return decodeURIComponent(text)
  } catch {
    throw refusal('invalid-event', `The header ${name} is not percent-encoded UTF-8.`)
  }
}

function oneOrMany(text: string): BodyItem[] {
  const value = whole(text)
  return Array.isArray(value) ? indexed(value) : [single(value)]
}

function one(text: string): BodyItem[] {
  return [single(whole(text))]
}

function many(text: string): BodyItem[] {
  const value = whole(text)
  if (!Array.isArray(value)) throw malformed('A batch of CloudEvents is a JSON array.')
  return indexed(value)
}

function lines(text: string): BodyItem[] {
  const filled = text
    .split('\n')
    .map((content, index) => ({ content, line: index + 1 }))
    .filter(({ content }) => content.trim() !== '')
  return counted(filled).map(({ content, line }, index) => Object.assign({ index, line }, parseJson(content)))
}

function whole(text: string): unknown {
  if (text.trim() === '') throw malformed('The body is empty.')
  const parsed = parseJson(text)
  if (!parsed.ok) throw malformed(`The body is not JSON: ${parsed.message}.`)
  return parsed.value
}

const single = (value: unknown): BodyItem => ({ index: null, line: null, ok: true, value })
const indexed = (values: unknown[]): BodyItem[] => counted(values).map((value, index) => ({ index, line: null, ok: true, value }))
const malformed = (detail: string): Problem => refusal('malformed-body', detail)

/** Checks the number of events before any of them is processed. */
function counted<Item>(items: Item[]): Item[] {
  if (items.length > 0 && items.length <= limits.events_per_request) return items
  const detail = `A request carries 1 to ${limits.events_per_request} events; this one carries ${items.length}.`
  throw refusal('wrong-event-count', detail)
}

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
  if (!parsed.ok) throw refused([parsed], 1)
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
  if (failures.length > 0) throw refused(failures, rows.length)
  return events
}

const malformedLine = (message: string) => ({ ok: false as const, reason: 'malformed' as const, errors: [{ path: '', message }] })

function located({ path, message }: FieldError, { index, line }: BodyItem): FieldError {
  return { ...(index === null ? {} : { index }), path, message: line === null ? message : `line ${line}: ${message}` }
}

function refused(failures: Failure[], count: number): Problem {
  const errors = failures.flatMap((failure) => failure.errors)
  const whole = count === 1 ? '' : ` ${failures.length} of ${count} events are invalid, so none was accepted.`
  const reasons = new Set(failures.map(({ reason }) => reason))
  if (reasons.has('too_large')) {
    const which = failures.filter(({ reason }) => reason === 'too_large').flatMap((failure) => failure.errors.map(place))
    return refusal('event-too-large', `Too large: ${which.join(', ')}; at most ${limits.event_bytes} bytes each.${whole}`, { errors })
  }
  const only = reasons.size === 1 ? failures[0]?.reason : undefined
  const kind = only === 'malformed' ? 'malformed-body' : only === 'unknown_type' ? 'unknown-type' : 'invalid-event'
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
  sender: senderOfKey(principal.key_id),
  role: senderRole(principal),
  secrets: deploymentHider(env),
  ...(scope === undefined ? {} : { scope }),
})
