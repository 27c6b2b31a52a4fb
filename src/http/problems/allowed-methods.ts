import type { Context, Env, Hono, Schema } from 'hono'
import { handleNotFound, problemResponse } from './problem.ts'
import { refusal } from './refusals.ts'

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
