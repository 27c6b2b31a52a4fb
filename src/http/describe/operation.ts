import type { RouteConfig, z } from '@hono/zod-openapi'
import type { Context, Handler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { AnswerOf, AnyOperation, Method } from '../../contract/operation.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, json, jsonRequest, problems, routes, type Meaning, type ProblemResponse } from './describe.ts'

type Present<Part> = [NonNullable<Part>] extends [never] ? undefined : NonNullable<Part>
type Parsed<Part> = NonNullable<Part> extends z.ZodType ? z.output<NonNullable<Part>> : undefined
type Content<Schema> = { content: { 'application/json': { schema: Schema } } }

type Implied<Op extends AnyOperation> =
  | 401
  | 403
  | 429
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
      string,
    ]
      ? Content<Schema>
      : unknown)
  } & Record<Implied<Op> | Own<Op>, ProblemResponse>
}

/** The parts of a request, as their schemas parse them. */
type RequestOf<Op extends AnyOperation> = { params: Parsed<Op['params']>; query: Parsed<Op['query']>; body: Parsed<Op['body']> }

type IsOne<Statuses, All = Statuses> = Statuses extends unknown ? ([All] extends [Statuses] ? true : false) : never
/** A handler returns the status as well, where a success has several. */
type Answered<Op extends AnyOperation> =
  IsOne<keyof Op['answers']> extends true ? AnswerOf<Op['answers']> : readonly [keyof Op['answers'], AnswerOf<Op['answers']>]

type OperationHandler<Op extends AnyOperation> = (c: Context<AuthEnv>, asked: RequestOf<Op>) => Promise<Answered<Op>> | Answered<Op>
type Valid = { out: { param: unknown; query: unknown; json: unknown } }

/** Serves an operation: for `openapiRoutes`. What `run` refuses, it throws as a Problem. */
export function serve<Op extends AnyOperation>(op: Op, run: OperationHandler<Op>): { route: RouteOf<Op>; handler: Handler<AuthEnv> }
export function serve(op: AnyOperation, run: (c: Context<AuthEnv>, asked: never) => unknown): { route: unknown; handler: unknown } {
  const statuses = Object.keys(op.answers).map(Number)
  const handler = async (c: Context<AuthEnv, string, Valid>) => {
    const asked = { params: c.req.valid('param'), query: c.req.valid('query'), body: c.req.valid('json') }
    const given = await run(c, asked as never)
    const [status, body] = statuses.length === 1 ? [statuses[0], given] : (given as [number, unknown])
    return op.answers[status ?? 200]?.[0] === null ? c.body(null, 204) : c.json(body as object, status as ContentfulStatusCode)
  }
  return { route: routeOf(op), handler }
}

function routeOf(op: AnyOperation): RouteConfig {
  const { at, id, tag, summary, description, roles, scoped, takes, params, query, body, example } = op
  const content = body && jsonRequest(body, example)
  const request = {
    ...(params && { params }),
    ...(query && { query }),
    ...(content && { body: { ...content, required: takes !== 'optional' } }),
  }
  const answers = Object.entries(op.answers).map(([status, [schema, meaning]]) => [
    status,
    schema ? json(schema, meaning) : { description: meaning },
  ])
  return routes(tag)(at, id, summary, {
    ...(description !== undefined && { description }),
    ...guard({ roles, ...(scoped && { scoped }), ...(body && { body: takes === 'defaulted' ? 'optional' : (takes ?? 'json') }) }),
    ...((params ?? query ?? body) && { request }),
    responses: { ...Object.fromEntries(answers), ...problems(...problemsOf(op)) },
  })
}

function problemsOf({ params, query, body, problems: own = [] }: AnyOperation): Meaning[] {
  const bad = (params ?? query ?? body) ? [400] : []
  return [...bad, ...(body ? [413, 415] : []), ...own] as Meaning[]
}

/** The answer to what a caller may send twice: 201 the first time, then 200. */
export const created = <Made>(is_new: boolean, made: Made): readonly [200 | 201, Made] => [is_new ? 201 : 200, made]
