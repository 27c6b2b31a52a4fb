import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { RouteEnv } from '../../agent/define-agent.ts'
import type { Env } from '../../env.ts'
import { DEFAULT_SCOPE, type Event, scopeName, randomHex } from '../../core/event.ts'
import { iso } from '../../base/time.ts'
import { senderOfKey } from '../../contract/sender.ts'
import type { Problem } from '../../contract/problem.ts'
import { forbidden, refusal, tooMany, unavailable } from '../problems/refusals.ts'
import { APPLY, lacksTables } from '../problems/required-bindings.ts'
import { coversScope, hasRole, type Principal, ADMIN_KEY_ID } from '../../contract/principal.ts'
import { createKeyCache, type KeyCache } from './key-cache.ts'
import { anyKey, findKey, noteUse } from '../../store/access/keys.ts'
import { storeOf } from '../../store/store.ts'
import { createHash } from 'node:crypto'
import { API_KEY } from '../../base/secrets.ts'
import { toBase64Url } from './base64url.ts'

const ID_BYTES = 8
const SECRET_BYTES = 32
const WHOLE_KEY = new RegExp(`^${API_KEY}$`)

/** A new key. `key` is shown once; only `hash` is stored. */
export function createKey(): { id: string; key: string; hash: string } {
  const id = randomHex(ID_BYTES)
  const key = `rfx_${id}_${toBase64Url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))}`
  return { id, key, hash: hashKey(key) }
}

export function parseKey(text: string): { id: string; secret: string } | null {
  const [, id, secret] = WHOLE_KEY.exec(text) ?? []
  return id !== undefined && secret !== undefined ? { id, secret } : null
}

/** SHA-256 of the whole key, in hex. Its 256 random bits make a slow hash needless. */
export const hashKey = (key: string): string => createHash('sha256').update(key).digest('hex')

/** Compares two hashes in a time that does not tell where they differ. */
export function sameHash(left: string, right: string): boolean {
  const a = new TextEncoder().encode(left)
  const b = new TextEncoder().encode(right)
  if (a.byteLength !== b.byteLength) return false
  // Node, where the unit tests run, has no `timingSafeEqual` there.
  return typeof crypto.subtle.timingSafeEqual === 'function' ? crypto.subtle.timingSafeEqual(a, b) : sameBytes(a, b)
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  let difference = 0
  for (const [index, byte] of a.entries()) difference |= byte ^ (b[index] ?? 0)
  return difference === 0
}

export type KeyRecord = {
  id: string
  name: string
  roles: string[]
  scopes: string[]
  hash: string
  expires_at?: number | null
  used_at?: number | null
}
/** Throws if the lookup fails. */
export type KeyLookup = (id: string) => Promise<KeyRecord | null>
/** `any_key` only improves an error. `before_look` throws if D1 was asked too often. */
type Credentials = {
  admin_key: string | undefined
  keys: KeyLookup
  any_key?: () => Promise<boolean>
  used?: (key: KeyRecord) => void
  before_look?: (id?: string) => Promise<void>
}
type KeyRefusal = {
  ok: false
  reason: 'no_key_configured' | 'missing' | 'malformed' | 'unknown' | 'unavailable'
  detail: string
}
type Authenticated = { ok: true; principal: Principal } | KeyRefusal

const admin: Principal = { key_id: ADMIN_KEY_ID, name: 'admin', roles: ['admin'], scopes: ['*'] }
const NO_HASH = '0'.repeat(64)

/** Upholds G7: only a matching key leads to a principal. `authorization` is the raw header. */
export async function authenticate(authorization: string | null, credentials: Credentials): Promise<Authenticated> {
  const configured = credentials.admin_key?.trim() ? credentials.admin_key.trim() : undefined
  const refused = await refuse(authorization, { ...credentials, admin_key: configured })
  if (refused.ok || configured !== undefined) return refused
  if (refused.reason === 'unavailable') return refused
  return (await mayHaveKeys(credentials)) ? refused : notConfigured
}

async function refuse(authorization: string | null, { admin_key, ...credentials }: Credentials): Promise<Authenticated> {
  if (authorization === null) return keyRefusal('missing', 'Send a key: Authorization: Bearer KEY.')
  const token = /^bearer +(\S.*)$/i.exec(authorization.trim())?.[1]
  if (token === undefined) return keyRefusal('malformed', 'The Authorization header must have the form: Bearer KEY.')
  const hash = hashKey(token)
  const isAdmin = sameHash(hash, hashOfAdmin(admin_key ?? ''))
  if (admin_key !== undefined && isAdmin) return { ok: true, principal: { ...admin } }
  return check(hash, parseKey(token)?.id, credentials)
}

let known_admin: { key: string; hash: string } | undefined

/** Each request is compared with it. */
function hashOfAdmin(key: string): string {
  if (known_admin?.key !== key) known_admin = { key, hash: hashKey(key) }
  return known_admin.hash
}

type Lookup = Omit<Credentials, 'admin_key'>

async function check(hash: string, id: string | undefined, { keys, used, before_look }: Lookup): Promise<Authenticated> {
  let record: KeyRecord | null = null
  if (id !== undefined) await before_look?.(id)
  try {
    if (id !== undefined) record = await keys(id)
  } catch (error) {
    const why = lacksTables(error) ? `the database has no tables: ${APPLY}` : 'the database does not respond. Try again in a few seconds'
    return keyRefusal('unavailable', `Keys cannot be checked: ${why}.`)
  }
  const matches = sameHash(hash, record?.hash ?? NO_HASH)
  if (!record || !matches) return keyRefusal('unknown', 'Unknown key: it may have been deleted or mistyped.')
  if (hasExpired(record)) return keyRefusal('unknown', `The key ${record.name} expired at ${iso(record.expires_at)}.`)
  used?.(record)
  return { ok: true, principal: { key_id: record.id, name: record.name, roles: record.roles, scopes: record.scopes } }
}

const hasExpired = (key: KeyRecord): key is KeyRecord & { expires_at: number } => key.expires_at != null && key.expires_at <= Date.now()

async function mayHaveKeys({ any_key, before_look }: Lookup): Promise<boolean> {
  try {
    await before_look?.()
    return any_key === undefined || (await any_key())
  } catch (error) {
    return !lacksTables(error)
  }
}

const keyRefusal = (reason: KeyRefusal['reason'], detail: string): KeyRefusal => ({ ok: false, reason, detail })
const notConfigured = keyRefusal(
  'no_key_configured',
  'No key is configured, so everything is closed. Deployed: run `wrangler secret put REFLEX_ADMIN_KEY`. ' +
    'Locally: put REFLEX_ADMIN_KEY=… into .dev.vars. Then send it as Authorization: Bearer KEY.',
)

export type AuthEnv = RouteEnv
/** The context of a request for work that outlives its handler, such as a stream. */
export type Caller = Pick<Context<AuthEnv>, 'env' | 'req' | 'var' | 'executionCtx'>
/** `knows`: ids that need no lookup, or that were keys at the last one. */
type KeySource = (env: Env) => Pick<Credentials, 'keys' | 'any_key'> & {
  knows: (id: string) => boolean
  /** Notes that the key is used. It throws nothing. */
  noted?: (key: KeyRecord) => Promise<void>
}

/** The period of the RATE_LIMIT binding in wrangler.toml, in seconds. */
const RATE_PERIOD_S = 10

/**
 * Upholds G7: sets `principal`, or rejects. Rate-limits the address before it queries D1 for an
 * unknown key.
 */
export const authenticated = (source: KeySource) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    if (c.get('principal') as Principal | undefined) return next()
    const { keys, any_key, knows, noted } = source(c.env)
    let allowed: Promise<boolean> | undefined
    const demandRate = async () => {
      allowed ??= isWithinRate(c.env, addressKey('guess', c.req.header('CF-Connecting-IP')))
      if (!(await allowed)) throw rateExceeded('this address')
    }
    const outcome = await authenticate(c.req.header('Authorization') ?? null, {
      admin_key: c.env.REFLEX_ADMIN_KEY,
      keys,
      ...(any_key && { any_key }),
      ...(noted && { used: (key) => c.executionCtx.waitUntil(noted(key)) }),
      before_look: async (id) => {
        if (id === undefined || !knows(id)) await demandRate()
      },
    })
    if (!outcome.ok) {
      await demandRate()
      throw refused(outcome.reason, outcome.detail)
    }
    c.set('principal', outcome.principal)
    await next()
  })

/** Sets `principal` from `?ticket=`, for browsers. A key in the header takes precedence. */
export const ticketed = (redeem: (env: Env, scope: string, ticket: string) => Promise<Principal | null>) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    const ticket = c.req.query('ticket')
    if (ticket === undefined || c.req.header('Authorization') !== undefined) return next()
    if (!(await isWithinRate(c.env, addressKey('ticket', c.req.header('CF-Connecting-IP'))))) throw rateExceeded('this address')
    const scope = scopeName.safeParse(c.req.param('scope'))
    const principal = scope.success ? await redeem(c.env, scope.data, ticket) : null
    if (!principal) throw refused('unknown', BAD_TICKET)
    c.set('principal', principal)
    await next()
  })

const BAD_TICKET = 'This ticket is invalid: it was already used, is older than 60 s, or was issued for another scope. Request a new one.'

/** Any of the roles is enough. */
export const requires = (...roles: readonly string[]) =>
  createMiddleware<AuthEnv>(async (c, next) => {
    demandRole(c.var.principal, ...roles)
    await next()
  })

/** The sender whose events alone the caller may read; undefined for a viewer, who may read all. */
export const onlyOwn = (principal: Principal): string | undefined =>
  hasRole(principal, 'viewer') ? undefined : senderOfKey(principal.key_id)

/** Refuses to show what came of another key's event. Its id, sent again, gives no right to it. */
export function demandReader(principal: Principal, { id, meta }: Event): void {
  const sender = onlyOwn(principal)
  if (sender !== undefined && meta.sender !== sender)
    throw forbidden(`The event ${id} was sent with another key: its result is for keys with the role viewer.`)
}

export function demandRole(principal: Principal, ...roles: readonly string[]): void {
  if (roles.some((role) => hasRole(principal, role))) return
  throw forbidden(`This needs the role ${roles.join(' or ')}; the key ${principal.name} has: ${principal.roles.join(', ') || 'none'}.`)
}

export function demandCoverage(principal: Principal, events: readonly Pick<Event, 'scope'>[]): void {
  const index = events.findIndex(({ scope }) => !coversScope(principal, scope))
  const scope = events[index]?.scope
  if (scope === undefined) return
  const detail = `The key ${principal.name} does not cover the scope ${scope}.`
  const errors = [{ ...(events.length > 1 ? { index } : {}), path: 'scope', message: 'is not covered by the key' }]
  throw forbidden(detail, errors)
}

/** Sets `scope` from the path's `:scope`, if it is valid and the key covers it. */
export const scopeParam = createMiddleware<AuthEnv>(async (c, next) => {
  c.set('scope', covered(c.var.principal, c.req.param('scope'), 'The scope in the path is not valid'))
  await next()
})

export const scopeQuery = createMiddleware<AuthEnv>(async (c, next) => {
  c.set('scope', covered(c.var.principal, c.req.query('scope') ?? DEFAULT_SCOPE, 'The scope in the query is not valid'))
  await next()
})

function covered(principal: Principal, name: string | undefined, what: string): string {
  const parsed = scopeName.safeParse(name)
  if (!parsed.success) {
    const errors = parsed.error.issues.map(({ message }) => ({ path: 'scope', message }))
    throw refusal('invalid-scope', `${what}: ${errors[0]?.message} (in an address, team-a/x is team-a%2Fx).`, { errors })
  }
  if (!coversScope(principal, parsed.data)) throw forbidden(`The key ${principal.name} does not cover the scope ${parsed.data}.`)
  return parsed.data
}

/**
 * Rate-limits one key. The limiter is best effort: if it is absent or broken, requests pass. A
 * deployed one counts in memory, the one of a local server writes a row for each request.
 */
export const rateLimited = createMiddleware<AuthEnv>(async (c, next) => {
  const { key_id, name } = c.var.principal
  if (c.env.REFLEX_RATE_LIMIT !== 'off' && !(await isWithinRate(c.env, key_id))) throw rateExceeded(`the key ${name}`)
  await next()
})

export const addressLimited = createMiddleware<AuthEnv>(async (c, next) => {
  const key = addressKey('open', c.req.header('CF-Connecting-IP'))
  if (!(await isWithinRate(c.env, key))) throw rateExceeded('this address')
  await next()
})

const addressKey = (what: string, address: string | undefined): string => `${what}:${address ?? ''}`

async function isWithinRate(env: Env, key: string): Promise<boolean> {
  const allowed = await env.RATE_LIMIT?.limit({ key }).catch(() => undefined)
  return allowed?.success !== false
}

const rateExceeded = (who: string): Problem =>
  tooMany('too-many-requests', `Too many requests by ${who}. Try again in ${RATE_PERIOD_S} s.`, RATE_PERIOD_S)

function refused(reason: KeyRefusal['reason'], detail: string): Problem {
  if (reason === 'unavailable') return unavailable(detail)
  const kind = reason === 'no_key_configured' ? 'no-key-configured' : 'unauthenticated'
  return refusal(kind, detail, { headers: { 'WWW-Authenticate': 'Bearer' } })
}

/** How long the answer to "is there any key?" is used: it only words a refusal. */
const ANY_KEY_MS = 5000

let cache: KeyCache<KeyRecord> | undefined
let any: { until: number; found: boolean } | undefined

export const keySource: KeySource = (env: Env) => {
  cache ??= createKeyCache((id) => findKey(storeOf(env), id), Date.now)
  return { keys: cache.find, knows: cache.knows, any_key: () => isAnyKey(env), noted: (key) => noteUse(storeOf(env), key) }
}

async function isAnyKey(env: Env): Promise<boolean> {
  if (any && Date.now() < any.until) return any.found
  any = { found: await anyKey(storeOf(env)), until: Date.now() + ANY_KEY_MS }
  return any.found
}

export const forgetKey = (id: string): void => cache?.forget(id)

/** True once the key of a request is deleted or expires. An answer that continues asks for it. */
export async function isKeyEnded(env: Env, { key_id }: Pick<Principal, 'key_id'>): Promise<boolean> {
  if (key_id === ADMIN_KEY_ID) return false
  // While D1 is away, what is open stays so.
  const key = await keySource(env)
    .keys(key_id)
    .catch(() => undefined)
  return key === null || (key !== undefined && hasExpired(key))
}
