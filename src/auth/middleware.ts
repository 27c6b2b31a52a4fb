import { createMiddleware } from 'hono/factory'
import type { Env } from '../bindings.ts'
import { scopeName } from '../core/event.ts'
import { Problem, type ProblemOptions, type ProblemType } from '../protocol/problem.ts'
import { authenticate, type Credentials, type Refusal } from './authenticate.ts'
import { coversScope, hasRole, type Principal } from './principal.ts'

export type AuthEnv = { Bindings: Env; Variables: { principal: Principal; scope: string } }
export type KeySource = (env: Env) => Omit<Credentials, 'admin_key'>

/** The period of the RATE_LIMIT binding in wrangler.toml, in seconds. */
const RATE_PERIOD_S = 10

/** Keeps G7. Sets `principal`, or refuses. */
export const authenticated = (source: KeySource) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    const outcome = await authenticate(c.req.header('Authorization') ?? null, { ...source(c.env), admin_key: c.env.REFLEX_ADMIN_KEY })
    if (!outcome.ok) throw new Problem({ ...refusals[outcome.reason], detail: outcome.detail })
    c.set('principal', outcome.principal)
    await next()
  })

export const requires = (role: string) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    if (!hasRole(c.var.principal, role)) {
      throw forbidden(`This needs the role ${role}; the key ${c.var.principal.name} has: ${c.var.principal.roles.join(', ') || 'none'}.`)
    }
    await next()
  })

/** Sets `scope` from the path's `:scope`, if it is one and the key covers it. */
export const scopeParam = createMiddleware<AuthEnv>(async (c, next) => {
  const parsed = scopeName.safeParse(c.req.param('scope'))
  if (!parsed.success) {
    const errors = parsed.error.issues.map(({ message }) => ({ path: 'scope', message }))
    const detail = 'The scope in the path is not valid. Percent-encode it: team-a/x is team-a%2Fx.'
    throw new Problem({ status: 400, type: 'urn:reflex:problem:invalid-scope', title: 'Invalid scope', detail, errors })
  }
  if (!coversScope(c.var.principal, parsed.data))
    throw forbidden(`The key ${c.var.principal.name} does not cover the scope ${parsed.data}.`)
  c.set('scope', parsed.data)
  await next()
})

/** Limits what one key may ask for. The limiter protects, it guarantees nothing: where it is absent or broken, requests pass. */
export const rateLimited = createMiddleware<AuthEnv>(async (c, next) => {
  const allowed = await c.env.RATE_LIMIT?.limit({ key: c.var.principal.key_id }).catch(() => undefined)
  if (allowed?.success === false) {
    const headers = { 'Retry-After': String(RATE_PERIOD_S) }
    const detail = `The key ${c.var.principal.name} makes too many requests. Try again in ${RATE_PERIOD_S} s.`
    throw new Problem({ status: 429, type: 'urn:reflex:problem:too-many-requests', title: 'Too many requests', detail, headers })
  }
  await next()
})

const refusals: Record<Refusal['reason'], Omit<ProblemOptions, 'detail'>> = {
  no_key_configured: unauthenticated('urn:reflex:problem:no-key-configured'),
  missing: unauthenticated('urn:reflex:problem:unauthenticated'),
  malformed: unauthenticated('urn:reflex:problem:unauthenticated'),
  unknown: unauthenticated('urn:reflex:problem:unauthenticated'),
  unavailable: { status: 503, type: 'urn:reflex:problem:unavailable', title: 'Temporarily unavailable', headers: { 'Retry-After': '5' } },
}

function unauthenticated(type: ProblemType): Omit<ProblemOptions, 'detail'> {
  return { status: 401, type, title: 'Not authenticated', headers: { 'WWW-Authenticate': 'Bearer' } }
}

const forbidden = (detail: string): Problem =>
  new Problem({ status: 403, type: 'urn:reflex:problem:forbidden', title: 'Forbidden', detail })
