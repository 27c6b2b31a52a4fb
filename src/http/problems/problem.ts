import type { Context, Env, Hono, Schema } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { Problem } from '../../contract/problem.ts'
import { notFound, refusal } from './refusals.ts'
import type { Env as Bindings } from '../../env.ts'
import { APPLY, lackOf, lacksTables, missingSentence } from './required-bindings.ts'
import { messageOf } from '../../base/error-text.ts'
import { isTransient } from '../../base/faults.ts'
import { logError, warn } from '../../base/warn.ts'

/** RFC 9457. `instance` identifies one occurrence in the log. */
function problemResponse({ status, type, title, detail, errors, extension, headers }: Problem, instance?: string): Response {
  const body = { type, title, status, detail, ...(instance ? { instance } : {}), ...(errors ? { errors } : {}), ...extension }
  return new Response(JSON.stringify(body), { status, headers: { ...headers, 'Content-Type': 'application/problem+json' } })
}

/** For app.onError. */
export function handleError(error: Error, c: Context): Response {
  const { problem, instance } = problemOf(error, c.req, c.env as Bindings)
  return answer(c, problemResponse(problem, instance))
}

/**
 * For any error but a Problem the caller gets an id, the log the details. `env`: null where a
 * missing binding would have ended the request before.
 */
export function problemOf(
  error: unknown,
  { method, path }: { method: string; path: string },
  env: Bindings | null = null,
): { problem: Problem; instance?: string } {
  if (error instanceof Problem) return { problem: explained(error, env) }
  if (error instanceof HTTPException) return { problem: fromHttpException(error) }
  const lack = lackOf(error, env)
  if (lack === null && isTransient(error)) {
    warn({ message: 'a dependency is unavailable', path, error })
    return { problem: away }
  }
  const instance = `urn:uuid:${crypto.randomUUID()}`
  const { name, message, stack } = error instanceof Error ? error : new Error(messageOf(error))
  logError({ level: 'error', instance, method, path, name, message, stack })
  // A missing binding may not be the cause: the log has what really failed.
  if (lack !== null) return { problem: refusal('binding-missing', lack), instance }
  return { problem: lacksTables(error) ? outdated : internal, instance }
}

/** Adds the missing binding, which may be why something is unavailable. */
function explained(problem: Problem, env: Bindings | null): Problem {
  const { status, type, title, detail, errors, extension, headers } = problem
  const lack = type === away.type && env !== null ? missingSentence(env) : null
  return lack === null ? problem : new Problem({ status, type, title, detail: `${detail} ${lack}`, errors, extension, headers })
}

export function handleNotFound(c: Context, hint = 'The routes are described at /v1/docs.'): Response {
  const detail = `There is nothing at ${c.req.method} ${c.req.path}. ${hint}`
  return answer(c, problemResponse(notFound(detail)))
}

const away = refusal(
  'unavailable',
  'A part of the platform did not respond, or is being replaced. Try again; events that are sent again under the same ids are not duplicated.',
  { headers: { 'Retry-After': '1' } },
)
const internal = refusal('internal', 'Internal error. Search the log for this `instance`.')
const outdated = refusal('internal', `The database lacks a table or a column of this version: ${APPLY}.`)

function fromHttpException(error: HTTPException): Problem {
  const { status, message, res } = error
  const title = `HTTP ${status}`
  const headers = Object.fromEntries([...(res?.headers ?? [])].filter(([name]) => !name.startsWith('content-')))
  return new Problem({ status, type: `urn:reflex:problem:http-${status}`, title, detail: message || title, headers })
}

/** Through the context, which keeps the headers set by middleware. */
function answer(c: Context, response: Response): Response {
  return c.newResponse(response.body, response)
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const MOST_PARTS = 10

/** For app.notFound: 405 where the path is served under another method, else 404. */
export const notFoundIn =
  <E extends Env, S extends Schema, Base extends string>({ router }: Hono<E, S, Base>) =>
  (c: Context): Response => {
    // Middleware matches too, under the method ALL.
    const methodsOf = (path: string) =>
      METHODS.filter((method) => router.match(method, path)[0].some(([[, route]]) => route.method === method))
    const allowed = methodsOf(c.req.path)
    if (allowed.length > 0) {
      const detail = `${c.req.path} takes ${allowed.join(', ')}, not ${c.req.method}.`
      return problemResponse(refusal('method-not-allowed', detail, { headers: { Allow: allowed.join(', ') } }))
    }
    const meant = withScopeEncoded(c.req.path).find((path) => methodsOf(path).length > 0)
    return handleNotFound(c, meant && `A slash in the name of a scope is written %2F: ${meant}.`)
  }

/** The possible paths if slashes in the scope's name were not encoded, shortest name first. */
function withScopeEncoded(path: string): string[] {
  const [, rest] = /^\/v1\/scopes\/(.+)$/.exec(path) ?? []
  const parts = rest?.split('/') ?? []
  return parts.slice(1, MOST_PARTS).map((_, index) => {
    const scope = parts.slice(0, index + 2).join('%2F')
    return `/v1/scopes/${[scope, ...parts.slice(index + 2)].join('/')}`
  })
}
