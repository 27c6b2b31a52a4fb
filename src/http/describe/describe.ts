import { createRoute, OpenAPIHono, type RouteConfig, z } from '@hono/zod-openapi'
import type { TypedResponse } from 'hono'
import type { JSONParsed } from 'hono/utils/types'
import type { BaseRole } from '../../contract/principal.ts'
import { problem } from '../../contract/problem.ts'
import { requires, scopeParam, scopeQuery, type AuthEnv } from '../auth/middleware.ts'
import { fileBody, jsonBody, optionalJsonBody, reportBody } from '../body/json-body.ts'

export { idPath, scopePath } from '../../contract/operations/shared.ts'

/** Typed as a string: zod-openapi's types would infer a JSON response from the literal. */
export const NDJSON: string = 'application/x-ndjson'

export const resource = () => new OpenAPIHono<AuthEnv>()

/** Describes routes under one tag. `at` is a method and a path. */
export const routes =
  (tag: string) =>
  <Method extends RouteConfig['method'], Path extends string, Rest extends Omit<RouteConfig, 'method' | 'path'>>(
    at: `${Method} ${Path}`,
    operationId: string,
    summary: string,
    rest: Rest,
  ) => {
    const [method, path] = at.split(' ') as [Method, Path]
    return createRoute({ ...rest, method, path, operationId, tags: [tag], summary })
  }

const bodies = { json: jsonBody, optional: optionalJsonBody, report: reportBody, file: fileBody }
type Guard = { roles: readonly [BaseRole, ...BaseRole[]]; scoped?: true | 'query'; body?: keyof typeof bodies }

/** Checks and documents the access to a route in one place. Any of the roles is enough. */
export function guard({ roles, scoped, body }: Guard) {
  const middleware = [requires(...roles)]
  if (scoped) middleware.push(scoped === 'query' ? scopeQuery : scopeParam)
  if (body) middleware.push(bodies[body])
  return { middleware, security: [{ bearer: [] }], 'x-reflex-roles': roles }
}

/** A route without a key. Explicit, so that a forgotten guard does not open a route. */
export const open = { security: [] }

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
export type Meaning = keyof typeof meanings
export type ProblemResponse = ReturnType<typeof problemJson<typeof problem>>

/** The problems that a guarded route may respond with: the common ones, and its own. */
export function problems<const Status extends Meaning = never>(...statuses: Status[]): Record<Status | 401 | 403 | 429, ProblemResponse>
export function problems(...statuses: Meaning[]): Partial<Record<Meaning, ProblemResponse>> {
  const all = [401, 403, 429, ...statuses] as const
  return Object.fromEntries(all.map((status) => [status, problemJson(problem, meanings[status])]))
}

export const problemJson = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { 'application/problem+json': { schema } },
})

export const json = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  description,
  content: { 'application/json': { schema } },
})
export const jsonRequest = <Schema extends z.ZodType>(schema: Schema, example: z.input<Schema>) => ({
  required: true,
  content: { 'application/json': { schema, example } },
})

export const traceId = z.string().regex(/^[0-9a-f]{32}$/, 'a trace id is 32 lower-case hex digits')
export const instant = z.iso
  .datetime({ offset: true, error: 'a time is ISO 8601 with its zone, such as 2026-11-21T05:00:00Z' })
  .transform((time) => new Date(time).toISOString())

export function jsonText<Body>(text: string | ReadableStream<Uint8Array>): Response & TypedResponse<JSONParsed<Body>, 200, 'json'>
export function jsonText(text: string | ReadableStream<Uint8Array>): Response {
  return new Response(text, { headers: { 'Content-Type': 'application/json' } })
}
