import { createRoute, z, type RouteConfig, OpenAPIHono } from '@hono/zod-openapi'
import type { Context, Handler, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { AnswerOf, OperationAnswers, AnyOperation, Method } from '../../contract/operation.ts'
import { described, plainSchema } from '../../contract/plain-schema.ts'
import { type AuthEnv, requires, scopeParam, scopeQuery } from '../auth/middleware.ts'
import { invalid, refuseInvalid } from '../problems/refusals.ts'
import { withinTime } from '../../base/deadline.ts'
import { nearestFirst } from '../../base/nearest.ts'
import { deploymentHider } from '../../base/secrets.ts'
import { warn } from '../../base/warn.ts'
import type { Change } from '../../contract/change.ts'
import { baseRoles, coversScope, type Principal } from '../../contract/principal.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { scopeName } from '../../core/event.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import { QUICK_MS } from '../../store/store.ts'
import { problem } from '../../contract/problem.ts'
import { fileBody, jsonBody, optionalJsonBody, reportBody } from '../body/body.ts'

export const resource = () => new OpenAPIHono<AuthEnv>()

const bodies = {
  json: [jsonBody],
  optional: [optionalJsonBody],
  defaulted: [optionalJsonBody],
  report: [reportBody],
  file: [fileBody],
  own: [],
}

/** Checks and documents the access to a route in one place. */
function accessOf({ roles, scoped, body, takes = 'json' }: AnyOperation) {
  if (!roles) return { middleware: [], security: [] }
  const scope = { none: [], path: [scopeParam], query: [scopeQuery] }[scoped === true ? 'path' : (scoped ?? 'none')]
  return { middleware: [requires(...roles), ...scope, ...(body ? bodies[takes] : [])], security: [{ bearer: [] }], 'x-reflex-roles': roles }
}

const meanings = {
  400: 'The request is invalid.',
  401: 'The key is missing or unknown.',
  403: 'The key lacks the role, or does not cover the scope.',
  404: 'Not found.',
  409: 'The current state does not allow it.',
  413: 'The body or an event is too large.',
  415: 'Unsupported Content-Type.',
  429: 'Too many requests, or the inbox is full: retry after `Retry-After`.',
  502: 'The decision model failed.',
  503: 'A dependency is unavailable: retry after `Retry-After`.',
  504: 'The time is up: repeat the request with its `Idempotency-Key`.',
} as const

type ProblemResponse = { description: string; content: { 'application/problem+json': { schema: typeof problem } } }

/** The problems that a request may be answered with: of its key, its parts, and its own. */
function problemsOf({ roles, params, query, headers, body, problems = [] }: AnyOperation): Record<number, ProblemResponse> {
  const of_key = roles ? [401, 403, 429] : []
  const of_parts = (params ?? query ?? headers ?? body) ? [400] : []
  const all = [...of_key, ...of_parts, ...(body ? [413, 415] : []), ...problems] as (keyof typeof meanings)[]
  const content = { 'application/problem+json': { schema: problem } }
  return Object.fromEntries(all.map((status) => [status, { description: meanings[status], content }]))
}

/** An answer that is JSON text already. */
export const jsonText = (text: string | ReadableStream<Uint8Array>): Response =>
  new Response(text, { headers: { 'Content-Type': 'application/json' } })

type Present<Part> = [NonNullable<Part>] extends [never] ? undefined : NonNullable<Part>
type Parsed<Part> = NonNullable<Part> extends z.ZodType ? z.output<NonNullable<Part>> : undefined
type Content<Schema> = { content: { 'application/json': { schema: Schema } } }

type Implied<Op extends AnyOperation> =
  | (Op['roles'] extends null ? never : 401 | 403 | 429)
  | (Op['params'] | Op['query'] | Op['body'] extends undefined ? never : 400)
  | (Op['body'] extends undefined ? never : 413 | 415)
type Own<Op extends AnyOperation> = NonNullable<Op['problems']>[number]

/** The route of an operation, as the typed client sees it. */
type RouteOf<Op extends AnyOperation> = {
  method: Op['at'] extends `${infer Verb extends Method} ${string}` ? Verb : never
  path: Op['at'] extends `${Method} ${infer Path}` ? Path : never
  request: {
    params: Present<Op['params']>
    query: Present<Op['query']>
    body: NonNullable<Op['body']> extends z.ZodType ? Content<NonNullable<Op['body']>> : undefined
  }
  responses: {
    [Status in keyof Op['answers']]: { description: string } & (Op['answers'][Status] extends readonly [
      infer Schema extends z.ZodType,
      ...unknown[],
    ]
      ? Content<Schema>
      : unknown)
  } & Record<Implied<Op> | Own<Op>, ProblemResponse>
}

/** The parts of a request, as their schemas parse them. */
export type RequestOf<Op extends AnyOperation> = {
  params: Parsed<Op['params']>
  query: Parsed<Op['query']>
  headers: Parsed<Op['headers']>
  body: Parsed<Op['body']>
}

type IsOne<Statuses, All = Statuses> = Statuses extends unknown ? ([All] extends [Statuses] ? true : false) : never
/** A handler returns the status as well, where a success has several. */
type Answered<Op extends AnyOperation> =
  IsOne<keyof Op['answers']> extends true ? AnswerOf<Op['answers']> : readonly [keyof Op['answers'], AnswerOf<Op['answers']>]

type OperationHandler<Op extends AnyOperation> = (
  c: Context<AuthEnv>,
  asked: RequestOf<Op>,
) => Promise<Answered<Op> | Response> | Answered<Op> | Response
type Valid = { out: { param: unknown; query: unknown; header: unknown; json: unknown } }

/**
 * Serves an operation: for `openapiRoutes`. What `run` refuses, it throws as a Problem. A response
 * of its own is sent as it is.
 */
export function serve<Op extends AnyOperation>(
  op: Op,
  run: OperationHandler<Op>,
  ...middleware: MiddlewareHandler<AuthEnv>[]
): { route: RouteOf<Op>; handler: Handler<AuthEnv> }
export function serve(
  op: AnyOperation,
  run: (c: Context<AuthEnv>, asked: never) => unknown,
  ...middleware: MiddlewareHandler<AuthEnv>[]
): { route: unknown; handler: unknown } {
  const statuses = Object.keys(op.answers).map(Number)
  const changes = isChange(op)
  const handler = async (c: Context<AuthEnv, string, Valid>) => {
    const { req } = c
    const body = op.recursive ? parsed(await req.text(), op.body) : req.valid('json')
    const asked = { params: req.valid('param'), query: req.valid('query'), headers: req.valid('header'), body }
    const given = await run(c, asked as never)
    const own = given instanceof Response ? given : null
    const [status, answer] = own ? [own.status] : statuses.length === 1 ? [statuses[0], given] : (given as [number, unknown])
    if (changes && own?.ok !== false) await tellChange(c, op, { body, answer })
    if (own) return own
    return op.answers[status ?? 200]?.[0] === null ? c.body(null, 204) : c.json(answer as object, status as ContentfulStatusCode)
  }
  return { route: routeOf(op, middleware), handler }
}

/** The body of an operation that the framework cannot parse. Its JSON was checked before. */
function parsed(text: string, schema: z.ZodType = z.unknown()): unknown {
  return refuseInvalid({ target: 'json', ...schema.safeParse(text.trim() === '' ? {} : JSON.parse(text)) })
}

function routeOf(op: AnyOperation, more: MiddlewareHandler<AuthEnv>[]): RouteConfig {
  const { at, id, tag, summary, description, params, query, headers } = op
  const body = bodyOf(op)
  const request = { ...(params && { params }), ...(query && { query }), ...(headers && { headers }), ...(body && { body }) }
  const access = accessOf(op)
  const [method, path] = at.split(' ') as [Method, string]
  return createRoute({
    method,
    path,
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    ...access,
    middleware: [...access.middleware, ...(query && method === 'get' ? [onlyKnown(Object.keys(query.shape))] : []), ...more],
    ...(Object.keys(request).length > 0 && { request }),
    responses: { ...answersOf(op.answers), ...problemsOf(op), ...answersOf(op.refusals ?? {}) },
  })
}

/** A misspelt parameter would otherwise be ignored, and another question answered. */
const onlyKnown =
  (known: readonly string[]): MiddlewareHandler<AuthEnv> =>
  (c, next) => {
    const unknown = Object.keys(c.req.query()).find((name) => !known.includes(name))
    if (unknown === undefined) return next()
    const [nearest, ...others] = nearestFirst(unknown, known)
    const rest = others.length > 0 ? ` The others are ${others.join(', ')}.` : ''
    throw invalid(`There is no parameter ${unknown}: the nearest is ${nearest}.${rest}`, [{ path: unknown, message: 'is unknown' }])
  }

function bodyOf({ body, recursive, takes, example, forms }: AnyOperation) {
  if (!body) return undefined
  const schema: z.ZodType = recursive ? described(plainSchema(body)) : body
  const { description, content: others } = forms ?? {}
  return {
    // The published document leaves out that the body of a skill's test may be absent.
    ...(!(takes === 'optional' && recursive) && { required: takes !== 'optional' }),
    ...(description && { description }),
    content: { 'application/json': { schema, example }, ...others },
  }
}

const answersOf = (answers: OperationAnswers) =>
  Object.fromEntries(
    Object.entries(answers).map(([status, [schema, description, forms = {}]]) => {
      const all = Object.entries({ ...(schema && { 'application/json': schema }), ...forms })
      const content = Object.fromEntries(all.map(([media, form]) => [media, { schema: form }]))
      return [status, { description, ...(all.length > 0 && { content }) }]
    }),
  )

/** The answer to what a caller may send twice: 201 the first time, then 200. */
export const created = <Made>(is_new: boolean, made: Made): readonly [200 | 201, Made] => [is_new ? 201 : 200, made]

/** The longest target; ids are shorter. */
const MOST_CHARACTERS = 256

/** True for requests of operators that do not only read, and for those that say so. */
const isChange = ({ at, roles, change }: AnyOperation): boolean =>
  change ?? (!at.startsWith('get ') && roles !== null && roles.every((role) => role === 'operator' || role === 'admin'))

type Done = { body: unknown; answer: unknown }

/**
 * Tells the features of a change that has happened. A failure cannot undo it: the Worker's log has
 * the change then. The answer does not wait for a slow database.
 */
async function tellChange(c: Context<AuthEnv>, op: AnyOperation, done: Done): Promise<void> {
  const change = changeOf(c, op, done)
  const told = c.var.changed(change).catch((error: unknown) => warn({ message: 'a change could not be recorded', ...change, error }))
  c.executionCtx.waitUntil(told)
  await withinTime(() => told, { timeout_ms: QUICK_MS })
}

function changeOf({ env, req, var: { principal, scope: asked } }: Context<AuthEnv>, op: AnyOperation, { body, answer }: Done): Change {
  const answered = fieldsOf(answer)
  const scope = (asked as string | undefined) ?? scopeIn(principal, [answered, fieldsOf(body)])
  const named = targetIn(req.param(), answered)
  const trace_id = answered['trace_id'] ?? traceContextOf(req.header('traceparent'))?.trace_id
  return {
    at: Date.now(),
    key_id: principal.key_id,
    key_name: principal.name,
    role: baseRoles.find((role) => principal.roles.includes(role)) ?? '',
    action: op.id,
    method: req.method,
    scope,
    reach: scope === null ? principal.scopes : [scope],
    target: named === null ? null : deploymentHider(env).text(named).slice(0, MOST_CHARACTERS),
    trace_id: typeof trace_id === 'string' ? trace_id : null,
  }
}

type Fields = Readonly<Record<string, unknown>>
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})

/** The scope that the answer or the body names, or whose agent owns what was changed. */
function scopeIn(principal: Principal, places: readonly Fields[]): string | null {
  const named = places.flatMap(({ scope, owner }) => [scope, typeof owner === 'string' ? scopeOfOwner(owner) : null])
  const found = named.find((name) => scopeName.safeParse(name).success) as string | undefined
  return found !== undefined && coversScope(principal, found) ? found : null
}

/** The last part of the path below the scope, or the id and version that the answer has. */
function targetIn({ scope: _scope, ...path }: Record<string, string>, answered: Fields): string | null {
  const [last] = Object.values(path).toReversed()
  if (last !== undefined) return last
  const field = 'id' in answered ? 'id' : Object.keys(answered).find((name) => name.endsWith('_id'))
  const id = field === undefined ? undefined : answered[field]
  if (typeof id !== 'string') return null
  const { version } = answered
  return typeof version === 'string' || typeof version === 'number' ? `${id}@${version}` : id
}
