import { createMiddleware } from 'hono/factory'
import type { RouteEnv } from '../../agent/define-agent.ts'
import type { Env } from '../../env.ts'
import { DEFAULT_SCOPE, scopeName } from '../../core/event.ts'
import { Problem, type ProblemOptions, type ProblemType } from '../../contract/problem.ts'
import { authenticate, type Credentials, type Refusal } from './authenticate.ts'
import { coversScope, hasRole, type Principal } from '../../contract/principal.ts'

export type AuthEnv = RouteEnv
/** `knows`: ids that cost no look-up, or that were keys at the last one. */
export type KeySource = (env: Env) => Pick<Credentials, 'keys' | 'any_key'> & { knows: (id: string) => boolean }

/** The period of the RATE_LIMIT binding in wrangler.toml, in seconds. */
const RATE_PERIOD_S = 10

/**
 * Keeps G7. Sets `principal`, or refuses. A ticket that was redeemed before is as good as a key. An
 * address is limited before D1 is asked about a key that nobody here has used; once a request.
 */
export const authenticated = (source: KeySource) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    if (c.get('principal') as Principal | undefined) return next()
    const { keys, any_key, knows } = source(c.env)
    let allowed: Promise<boolean> | undefined
    const demandRate = async () => {
      allowed ??= isWithinRate(c.env, addressKey('guess', c.req.header('CF-Connecting-IP')))
      if (!(await allowed)) throw tooMany('this address')
    }
    const outcome = await authenticate(c.req.header('Authorization') ?? null, {
      admin_key: c.env.REFLEX_ADMIN_KEY,
      keys,
      ...(any_key && { any_key }),
      before_look: async (id) => {
        if (id === undefined || !knows(id)) await demandRate()
      },
    })
    if (!outcome.ok) {
      await demandRate()
      throw new Problem({ ...refusals[outcome.reason], detail: outcome.detail })
    }
    c.set('principal', outcome.principal)
    await next()
  })

/**
 * Sets `principal` from a `?ticket=`, where a browser can set no header. A key in the header goes
 * before it. Guesses are limited by address: verifying one costs a signature.
 */
export const ticketed = (redeem: (env: Env, scope: string, ticket: string) => Promise<Principal | null>) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    const ticket = c.req.query('ticket')
    if (ticket === undefined || c.req.header('Authorization') !== undefined) return next()
    if (!(await isWithinRate(c.env, addressKey('ticket', c.req.header('CF-Connecting-IP'))))) throw tooMany('this address')
    const scope = scopeName.safeParse(c.req.param('scope'))
    const principal = scope.success ? await redeem(c.env, scope.data, ticket) : null
    if (!principal) throw new Problem({ ...unauthenticated('urn:reflex:problem:unauthenticated'), detail: BAD_TICKET })
    c.set('principal', principal)
    await next()
  })

const BAD_TICKET =
  'This ticket is not known here: it was used already, is older than 60 s, or was issued for another scope. Ask for a new one.'

/** Any of the roles is enough. */
export const requires = (...roles: readonly string[]) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    demandRole(c.var.principal, ...roles)
    await next()
  })

/** Any of the roles is enough. */
export function demandRole(principal: Principal, ...roles: readonly string[]): void {
  if (roles.some((role) => hasRole(principal, role))) return
  throw forbidden(`This needs the role ${roles.join(' or ')}; the key ${principal.name} has: ${principal.roles.join(', ') || 'none'}.`)
}

/** Sets `scope` from the path's `:scope`, if it is one and the key covers it. */
export const scopeParam = createMiddleware<AuthEnv>(async (c, next) => {
  c.set(
    'scope',
    covered(c.var.principal, c.req.param('scope'), 'The scope in the path is not valid. Percent-encode it: team-a/x is team-a%2Fx.'),
  )
  await next()
})

/** Sets `scope` from `?scope=`, or to the default one. */
export const scopeQuery = createMiddleware<AuthEnv>(async (c, next) => {
  c.set('scope', covered(c.var.principal, c.req.query('scope') ?? DEFAULT_SCOPE, 'The scope in the query is not valid.'))
  await next()
})

function covered(principal: Principal, name: string | undefined, detail: string): string {
  const parsed = scopeName.safeParse(name)
  if (!parsed.success) {
    const errors = parsed.error.issues.map(({ message }) => ({ path: 'scope', message }))
    throw new Problem({ status: 400, type: 'urn:reflex:problem:invalid-scope', title: 'Invalid scope', detail, errors })
  }
  if (!coversScope(principal, parsed.data)) throw forbidden(`The key ${principal.name} does not cover the scope ${parsed.data}.`)
  return parsed.data
}

/** Limits what one key may ask for. The limiter protects, it guarantees nothing: where it is absent or broken, requests pass. */
export const rateLimited = createMiddleware<AuthEnv>(async (c, next) => {
  const { key_id, name } = c.var.principal
  if (!(await isWithinRate(c.env, key_id))) throw tooMany(`the key ${name}`)
  await next()
})

/** Limits what one address may ask for of that which needs no key. */
export const addressLimited = createMiddleware<AuthEnv>(async (c, next) => {
  const key = addressKey('open', c.req.header('CF-Connecting-IP'))
  if (!(await isWithinRate(c.env, key))) throw tooMany('this address')
  await next()
})

const addressKey = (what: string, address: string | undefined): string => `${what}:${address ?? ''}`

async function isWithinRate(env: Env, key: string): Promise<boolean> {
  const allowed = await env.RATE_LIMIT?.limit({ key }).catch(() => undefined)
  return allowed?.success !== false
}

function tooMany(who: string): Problem {
  const detail = `Too many requests by ${who}. Try again in ${RATE_PERIOD_S} s.`
  return new Problem({ ...tooManyRequests, detail })
}

const tooManyRequests = {
  status: 429,
  type: 'urn:reflex:problem:too-many-requests',
  title: 'Too many requests',
  headers: { 'Retry-After': String(RATE_PERIOD_S) },
} as const

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
