import type { Context, Env, Hono, Schema } from 'hono'
import { Problem } from '../protocol/problem.ts'
import { handleNotFound, problemResponse } from './problem.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** For app.notFound: 405 where the path is served under another method, else 404. */
export const notFoundIn =
  <E extends Env, S extends Schema, Base extends string>({ router }: Hono<E, S, Base>) =>
  (c: Context): Response => {
    // Middleware matches too, under the method ALL.
    const allowed = METHODS.filter((method) => router.match(method, c.req.path)[0].some(([[, route]]) => route.method === method))
    return allowed.length === 0 ? handleNotFound(c) : problemResponse(wrongMethod(c, allowed.join(', ')))
  }

function wrongMethod({ req }: Context, allowed: string): Problem {
  return new Problem({
    status: 405,
    type: 'urn:reflex:problem:method-not-allowed',
    title: 'Method not allowed',
    detail: `${req.path} takes ${allowed}, not ${req.method}.`,
    headers: { Allow: allowed },
  })
}
