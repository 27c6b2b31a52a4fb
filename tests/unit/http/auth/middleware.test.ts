import { Hono } from 'hono'
import { describe, expect, test, vi } from 'vitest'
import {
  type KeyLookup,
  createKey,
  addressLimited,
  authenticated,
  demandCoverage,
  demandRole,
  demandReader,
  onlyOwn,
  rateLimited,
  requires,
  scopeParam,
  scopeQuery,
  ticketed,
  type AuthEnv,
} from '../../../../src/http/auth/middleware.ts'
import { buildEvent } from '../../../support/build-event.ts'
import type { Env } from '../../../../src/env.ts'
import { handleError, handleNotFound } from '../../../../src/http/problems/problem.ts'

const created = createKey()
const record = { id: created.id, name: 'ci', roles: ['publisher'], scopes: ['team-a/*'], hash: created.hash }
const keys: KeyLookup = async (id) => (id === created.id ? record : null)
type Needed = Pick<Env, 'REFLEX_ADMIN_KEY' | 'RATE_LIMIT' | 'REFLEX_RATE_LIMIT'>
const bindings = (own: Needed = {}): Needed => ({ REFLEX_ADMIN_KEY: 'admin-key', ...own })

function app(lookup: KeyLookup = keys, known = created.id) {
  const hono = new Hono<AuthEnv>()
  hono.use(
    authenticated(() => ({ keys: lookup, any_key: async () => false, knows: (id) => id === known })),
    rateLimited,
  )
  hono.get('/whoami', requires('publisher'), (c) => c.json(c.var.principal))
  hono.get('/operate', requires('operator'), (c) => c.json(c.var.principal))
  hono.get('/scopes/:scope/context', requires('publisher'), scopeParam, (c) => c.json({ scope: c.var.scope }))
  hono.onError(handleError)
  hono.notFound(handleNotFound)
  return hono
}

type Options = { key?: string | null; env?: Needed; hono?: ReturnType<typeof app> }
async function get(path: string, { key = created.key, env = bindings(), hono = app() }: Options = {}) {
  const response = await hono.request(path, { headers: key === null ? {} : { Authorization: `Bearer ${key}` } }, env)
  return { status: response.status, headers: response.headers, body: await response.json<Record<string, unknown>>() }
}

describe('a request', () => {
  test('with a key is served as its principal', async () => {
    expect(await get('/whoami')).toMatchObject({
      status: 200,
      body: { key_id: created.id, name: 'ci', roles: ['publisher'], scopes: ['team-a/*'] },
    })
    expect(await get('/whoami', { key: 'admin-key' })).toMatchObject({ status: 200, body: { name: 'admin' } })
  })

  test('outlives itself until the use of its key is noted', async () => {
    const hono = new Hono<AuthEnv>()
    const noted = vi.fn<() => Promise<void>>(async () => {})
    hono.use(authenticated(() => ({ keys, any_key: async () => true, knows: () => true, noted })))
    hono.get('/', (c) => c.text('served'))
    const waitUntil = vi.fn<ExecutionContext['waitUntil']>()
    const ask = (key: string) =>
      hono.request('/', { headers: { Authorization: `Bearer ${key}` } }, bindings(), { waitUntil } as unknown as ExecutionContext)
    await ask('admin-key')
    expect(noted).not.toHaveBeenCalled()
    await ask(created.key)
    expect(noted.mock.calls).toEqual([[record]])
    expect(waitUntil.mock.calls).toEqual([[noted.mock.results[0]?.value]])
  })

  test.each([null, 'wrong', `${created.key}x`])('with the key %s is not authenticated', async (key) => {
    const { status, headers, body } = await get('/whoami', { key })
    expect(status).toBe(401)
    expect(headers.get('WWW-Authenticate')).toBe('Bearer')
    expect(headers.get('Content-Type')).toBe('application/problem+json')
    expect(body).toMatchObject({ type: 'urn:reflex:problem:unauthenticated', status: 401 })
  })

  test('to a path that does not exist is not authenticated either', async () => {
    expect(await get('/nowhere', { key: null })).toMatchObject({ status: 401 })
    expect(await get('/nowhere')).toMatchObject({ status: 404, body: { detail: expect.stringContaining('/nowhere') } })
  })

  test('is refused where no key is configured', async () => {
    const env = {}
    expect(await get('/whoami', { env, key: 'undefined' })).toMatchObject({
      status: 401,
      body: { type: 'urn:reflex:problem:no-key-configured' },
    })
  })

  test('waits for the database to come back', async () => {
    const hono = app(async () => Promise.reject(new Error('down')))
    const { status, headers } = await get('/whoami', { hono })
    expect([status, headers.get('Retry-After')]).toEqual([503, '5'])
  })

  test('without the role is forbidden, by the name of the role', async () => {
    expect(await get('/operate')).toMatchObject({ status: 403, body: { detail: expect.stringContaining('operator') } })
    expect(await get('/operate', { key: 'admin-key' })).toMatchObject({ status: 200 })
  })
})

describe('a key that nobody here knows', () => {
  const unknown = `rfx_0123456789abcdef_${'A'.repeat(43)}`
  const lookup = vi.fn<KeyLookup>(async () => null)
  const limiter = (limit: RateLimit['limit']) => bindings({ RATE_LIMIT: { limit } })

  test('is looked up only within the limit of its address, which counts a request once', async () => {
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: false }))
    const hono = app(lookup)
    expect(await get('/whoami', { key: unknown, hono, env: limiter(limit) })).toMatchObject({ status: 429 })
    expect(lookup).not.toHaveBeenCalled()
    limit.mockResolvedValue({ success: true }).mockClear()
    expect(await get('/whoami', { key: unknown, hono, env: limiter(limit) })).toMatchObject({ status: 401 })
    expect([limit.mock.calls.length, lookup.mock.calls.length]).toEqual([1, 1])
  })

  test('costs no look for any key beyond that limit where none is configured', async () => {
    const any_key = vi.fn<() => Promise<boolean>>(async () => true)
    const hono = new Hono<AuthEnv>()
    hono.use(authenticated(() => ({ keys: lookup, any_key, knows: () => false })))
    hono.onError(handleError)
    const env = { RATE_LIMIT: { limit: async () => ({ success: false }) } }
    for (const key of [null, 'malformed', unknown]) expect((await get('/', { key, hono, env })).status).toBe(429)
    expect(any_key).not.toHaveBeenCalled()
  })

  test('does not keep the keys in use from the same address out', async () => {
    const env = limiter(async ({ key }) => ({ success: key === created.id }))
    expect(await get('/whoami', { env })).toMatchObject({ status: 200 })
  })
})

describe('the scope in a path', () => {
  test.each([
    ['team-a%2Fx', 'team-a/x'],
    ['team-a%2fx%2Fy', 'team-a/x/y'],
    ['team-a%2Fx%3Ay%40z', 'team-a/x:y@z'],
    ['team-a%2F:x', 'team-a/:x'],
  ])('%s is %s', async (encoded, scope) => {
    expect(await get(`/scopes/${encoded}/context`)).toMatchObject({ status: 200, body: { scope } })
  })

  test.each(['a%20b', 'a%', 'a%zz', 'team-a%252Fx', 'a%00', '%C3%A9', 'x'.repeat(129), '*'])('%s is rejected', async (encoded) => {
    expect(await get(`/scopes/${encoded}/context`, { key: 'admin-key' })).toMatchObject({
      status: 400,
      body: {
        type: 'urn:reflex:problem:invalid-scope',
        detail: expect.stringContaining('1 to 128 characters of A-Z a-z 0-9 . _ : @ - and /'),
        errors: [{ path: 'scope' }],
      },
    })
  })

  test.each(['team-b%2Fx', 'team-a', 'default'])('%s is not covered', async (encoded) => {
    expect(await get(`/scopes/${encoded}/context`)).toMatchObject({ status: 403, body: { type: 'urn:reflex:problem:forbidden' } })
  })
})

describe('the rate limit', () => {
  const limiter = (limit: RateLimit['limit']) => bindings({ RATE_LIMIT: { limit } })

  test('counts by key, and says when to come back', async () => {
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: false }))
    const { status, headers } = await get('/whoami', { env: limiter(limit) })
    expect([status, headers.get('Retry-After')]).toEqual([429, '10'])
    expect(limit).toHaveBeenCalledWith({ key: created.id })
  })

  test('that is off counts no request with a key, and still each address without one', async () => {
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: false }))
    const env = { ...limiter(limit), REFLEX_RATE_LIMIT: 'off' }
    expect(await get('/whoami', { env })).toMatchObject({ status: 200 })
    expect(limit).not.toHaveBeenCalled()
    expect(await get('/whoami', { key: null, env })).toMatchObject({ status: 429 })
    expect(limit).toHaveBeenCalledWith({ key: 'guess:' })
    expect(await get('/whoami', { env: { ...env, REFLEX_RATE_LIMIT: 'on' } })).toMatchObject({ status: 429 })
  })

  test('lets pass what is below it, and everything where it is broken', async () => {
    expect(await get('/whoami', { env: limiter(async () => ({ success: true })) })).toMatchObject({ status: 200 })
    expect(await get('/whoami', { env: limiter(async () => Promise.reject(new Error('broken'))) })).toMatchObject({ status: 200 })
  })
})

describe('a ticket', () => {
  const hono = new Hono<AuthEnv>()
  const guest = { key_id: 'guest', name: 'guest', roles: ['viewer'], scopes: ['team-a/1'] }
  const redeem = vi.fn<Parameters<typeof ticketed>[0]>(async () => guest)
  hono.get(
    '/scopes/:scope/sse',
    ticketed(redeem),
    authenticated(() => ({ keys, any_key: async () => false, knows: () => true })),
    (c) => c.json(c.var.principal),
  )
  hono.onError(handleError)
  const path = '/scopes/team-a%2F1/sse?ticket=t'

  test('serves a request without a key', async () => {
    expect(await get(path, { key: null, hono })).toMatchObject({ status: 200, body: { name: 'guest' } })
  })

  test('is not needed: a request with neither a key nor a ticket is refused for its lack of a key', async () => {
    redeem.mockClear()
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: true }))
    const env = bindings({ RATE_LIMIT: { limit } })
    const { status, body } = await get('/scopes/team-a%2F1/sse', { key: null, hono, env })
    expect([status, body['detail']]).toEqual([401, expect.stringContaining('Send a key')])
    expect([redeem.mock.calls, limit.mock.calls]).toEqual([[], [[{ key: 'guess:' }]]])
  })

  test('is left unused where the request has a key, which is then the one that counts', async () => {
    redeem.mockClear()
    expect(await get(path, { hono })).toMatchObject({ status: 200, body: { name: 'ci' } })
    expect(await get(path, { key: 'wrong', hono })).toMatchObject({ status: 401 })
    expect(redeem).not.toHaveBeenCalled()
  })

  test('that is refused, or for no valid scope, leads to nobody', async () => {
    redeem.mockResolvedValueOnce(null)
    const unauthenticated = { status: 401, body: { detail: expect.stringContaining('This ticket is invalid') } }
    expect(await get(path, { key: null, hono })).toMatchObject(unauthenticated)
    redeem.mockClear()
    expect(await get('/scopes/a%20b/sse?ticket=t', { key: null, hono })).toMatchObject(unauthenticated)
    expect(redeem).not.toHaveBeenCalled()
  })

  test('is redeemed only within the limit of its address', async () => {
    redeem.mockClear()
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: false }))
    const request = new Request(`http://localhost${path}`, { headers: { 'CF-Connecting-IP': '192.0.2.1' } })
    expect((await hono.request(request, undefined, bindings({ RATE_LIMIT: { limit } }))).status).toBe(429)
    expect(limit).toHaveBeenCalledWith({ key: 'ticket:192.0.2.1' })
    expect(redeem).not.toHaveBeenCalled()
  })

  test('for its scope is redeemed with its text', async () => {
    redeem.mockClear()
    await get(path, { key: null, hono })
    expect(redeem).toHaveBeenCalledWith(expect.anything(), 'team-a/1', 't')
  })
})

describe('the limit of an address', () => {
  const hono = new Hono<AuthEnv>()
  hono.get('/open', addressLimited, (c) => c.json({}))
  hono.onError(handleError)

  test('counts by address, and passes what is below it', async () => {
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: false }))
    const env = bindings({ RATE_LIMIT: { limit } })
    expect(await get('/open', { hono, env })).toMatchObject({ status: 429, body: { detail: expect.stringContaining('this address') } })
    expect(limit).toHaveBeenCalledWith({ key: 'open:' })
    limit.mockResolvedValue({ success: true })
    expect(await get('/open', { hono, env })).toMatchObject({ status: 200 })
    expect(await get('/open', { hono })).toMatchObject({ status: 200 })
  })
})

describe('the scope in a query', () => {
  const hono = new Hono<AuthEnv>()
  hono.use(authenticated(() => ({ keys, any_key: async () => false, knows: () => true })))
  hono.get('/events', scopeQuery, (c) => c.json({ scope: c.var.scope }))
  hono.onError(handleError)

  test('is checked, and is `default` where the query has none', async () => {
    expect(await get('/events?scope=team-a/1', { hono })).toMatchObject({ status: 200, body: { scope: 'team-a/1' } })
    expect(await get('/events', { hono, key: 'admin-key' })).toMatchObject({ status: 200, body: { scope: 'default' } })
    expect(await get('/events', { hono })).toMatchObject({ status: 403 })
    expect(await get('/events?scope=a%20b', { hono })).toMatchObject({
      status: 400,
      body: {
        detail: expect.stringContaining('The scope in the query is not valid: a scope is'),
        errors: [{ path: 'scope', message: expect.any(String) }],
      },
    })
  })
})

test('what came of an event is for the key that sent it, and for viewers', () => {
  const principal = (key_id: string, ...roles: string[]) => ({ key_id, name: 'n', roles, scopes: ['*'] })
  const meta = { trace_id: '0'.repeat(32), correlation_id: null, causation_id: null }
  const sent = buildEvent({ meta: { ...meta, sender: onlyOwn(principal('k1', 'publisher'))! } })
  expect(() => demandReader(principal('k1', 'publisher'), sent)).not.toThrow()
  expect(() => demandReader(principal('k2', 'publisher'), sent)).toThrow(/sent with another key/)
  expect(() => demandReader(principal('k2', 'publisher'), buildEvent())).toThrow(/sent with another key/)
  expect(() => demandReader(principal('k2', 'viewer'), sent)).not.toThrow()
  expect([onlyOwn(principal('k2', 'operator')), onlyOwn(principal('k1', 'publisher')) === undefined]).toEqual([undefined, false])
})

test('a request that one of several roles may make needs one of them, and a refusal names those of the key', () => {
  const principal = { key_id: created.id, name: 'ci', roles: ['publisher', 'team:a'], scopes: ['*'] }
  expect(() => demandRole(principal, 'operator', 'publisher')).not.toThrow()
  expect(() => demandRole(principal, 'operator', 'viewer')).toThrow(
    'This needs the role operator or viewer; the key ci has: publisher, team:a.',
  )
  expect(() => demandRole({ ...principal, roles: [] }, 'viewer')).toThrow('the key ci has: none.')
})

describe('the events of a request', () => {
  const principal = { key_id: created.id, name: 'ci', roles: ['publisher'], scopes: ['team-a/*', 'shared'] }
  const refusalOf = (...scopes: string[]) => {
    try {
      demandCoverage(
        principal,
        scopes.map((scope) => ({ scope })),
      )
      return null
    } catch (error) {
      return error
    }
  }

  test('need a key that covers the scope of each, and the first that is not covered is named', () => {
    expect([refusalOf(), refusalOf('shared'), refusalOf('team-a/1', 'shared')]).toEqual([null, null, null])
    const path = { path: 'scope', message: 'is not covered by the key' }
    expect(refusalOf('team-b/1')).toMatchObject({ status: 403 })
    expect((refusalOf('team-b/1') as { errors: object[] }).errors).toEqual([path])
    expect(refusalOf('shared', 'team-b/1', 'x')).toMatchObject({ status: 403, errors: [{ index: 1, ...path }] })
    expect(String(refusalOf('shared', 'team-b/1'))).toContain('The key ci does not cover the scope team-b/1.')
  })
})
