import { createMiddleware } from 'hono/factory'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import type { AnswerFailure } from './form.ts'

/** Also the key of the admin in `x-api-key`, as SDKs of Anthropic send theirs. */
const keyOfSdk = createMiddleware<AuthEnv>(async (c, next) => {
  const key = c.req.header('x-api-key')
  if (key === undefined || c.req.header('Authorization') !== undefined) return next()
  const headers = new Headers(c.req.raw.headers)
  headers.set('Authorization', `Bearer ${key}`)
  headers.delete('x-api-key')
  c.req.raw = new Request(c.req.raw, { headers })
  return next()
})

/**
 * Answers all that goes wrong below a path in the form of a provider: a key that is missing or may
 * not act in a scope, a body that is not a request, a path that is not there.
 */
const inFormOf = (failureOf: (failure: AnswerFailure) => object) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    await next()
    const { res } = c
    if (!res.headers.get('Content-Type')?.startsWith('application/problem+json')) return
    const { status, detail, type } = await res.json<{ status: number; detail: string; type: string }>()
    const headers = new Headers(res.headers)
    headers.set('Content-Type', 'application/json')
    // The context adds the headers of the response that it replaces.
    c.res = undefined
    c.res = new Response(JSON.stringify(failureOf({ status, message: detail, is_budget: type.endsWith(':budget-spent') })), {
      status,
      headers,
    })
  })

export const providerAccess = (failureOf: (failure: AnswerFailure) => object) => [inFormOf(failureOf), keyOfSdk]
