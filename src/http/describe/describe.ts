import { OpenAPIHono, z } from '@hono/zod-openapi'
import type { TypedResponse } from 'hono'
import type { JSONParsed } from 'hono/utils/types'
import { requires, scopeParam, scopeQuery, type AuthEnv } from '../auth/middleware.ts'
import type { BaseRole } from '../../contract/principal.ts'
import { scopeName } from '../../core/event.ts'
import { jsonBody, optionalJsonBody, reportBody } from '../body/json-body.ts'

export const resource = () => new OpenAPIHono<AuthEnv>()

const bodies = { json: jsonBody, optional: optionalJsonBody, report: reportBody }
type Guard = { roles: readonly [BaseRole, ...BaseRole[]]; scoped?: true | 'query'; body?: keyof typeof bodies }

/** Who may use a route, checked and described in one place. Any of the roles is enough. */
export function guard({ roles, scoped, body }: Guard) {
  const middleware = [requires(...roles)]
  if (scoped) middleware.push(scoped === 'query' ? scopeQuery : scopeParam)
  if (body) middleware.push(bodies[body])
  return { middleware, security: [{ bearer: [] }], 'x-reflex-roles': roles }
}

/** A route that needs no key. Said explicitly, so that none is open because somebody forgot its guard. */
export const open = { security: [] }

const fieldErrors = z.array(z.object({ index: z.int().optional(), path: z.string(), message: z.string() }))
export const problem = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z.string().optional(),
    errors: fieldErrors.optional(),
  })
  .openapi('Problem', { description: 'RFC 9457. `errors` names each bad place of the input; `index` is that of an event in a batch.' })

const meanings = {
  400: 'The request is not valid.',
  401: 'No key, or one that is not known.',
  403: 'The key lacks the role, or does not cover the scope.',
  404: 'There is no such thing.',
  409: 'It cannot be done in the present state.',
  413: 'The body or an event is too large.',
  415: 'Unsupported Content-Type.',
  429: 'Too many requests, or the inbox is full: try again after `Retry-After`.',
  503: 'Something that this needs is away: try again after `Retry-After`.',
} as const
type Meaning = keyof typeof meanings
type ProblemResponse = ReturnType<typeof problemJson<typeof problem>>

/** The problems that a guarded route may answer with: the usual ones, and its own. */
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

export const scopePath = z.object({ scope: scopeName.meta({ description: 'Percent-encoded: `team-a/x` is `team-a%2Fx`.' }) })
export const pageLimit = (most: number, standard = Math.min(100, most)) =>
  z.coerce.number<string>().int().min(1).max(most).default(standard)
export const instant = z.iso
  .datetime({ offset: true, error: 'a time is ISO 8601 with its zone, such as 2026-11-21T05:00:00Z' })
  .transform((time) => new Date(time).toISOString())
export const paged = <Item extends z.ZodType>(item: Item) => z.object({ items: z.array(item), next_cursor: z.string().nullable() })

/** An answer that is JSON text already. */
export function jsonText<Body>(text: string | ReadableStream<Uint8Array>): Response & TypedResponse<JSONParsed<Body>, 200, 'json'>
export function jsonText(text: string | ReadableStream<Uint8Array>): Response {
  return new Response(text, { headers: { 'Content-Type': 'application/json' } })
}
