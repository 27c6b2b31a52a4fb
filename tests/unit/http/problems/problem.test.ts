import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { missingText } from '../../../../src/base/missing-binding.ts'
import type { Env } from '../../../../src/env.ts'
import { unavailable } from '../../../../src/http/problems/refusals.ts'
import { fromZod, Problem } from '../../../../src/contract/problem.ts'
import { handleError, handleNotFound, problemOf } from '../../../../src/http/problems/problem.ts'

const problem = {
  status: 400,
  type: 'urn:reflex:problem:unknown-type',
  title: 'Unknown type',
  detail: 'No such type.',
  errors: [{ index: 3, path: 'type', message: 'unknown' }],
} as const

async function answerTo(error: unknown) {
  const app = new Hono()
  app.use(async (c, next) => {
    c.header('X-Request', '7')
    await next()
  })
  app.get('/x', () => {
    throw error
  })
  app.onError(handleError)
  app.notFound(handleNotFound)
  const response = await app.request('/x?ticket=secret')
  return { response, body: await response.json<Record<string, unknown>>() }
}

afterEach(() => {
  vi.restoreAllMocks()
})

test('a field that is not there is called missing, and one of another type by what was sent', () => {
  const message = z.strictObject({ content: z.string(), at: z.number() })
  expect(fromZod(message.safeParse({ at: 'now' }).error as z.ZodError)).toEqual([
    { path: 'content', message: 'is missing (expected string)' },
    { path: 'at', message: 'Invalid input: expected number, received string' },
  ])
})

describe('a binding that is missing', () => {
  const bound = { SCOPE: {}, SWEEPER: {}, GLOBAL_KEYS: {}, LEARNER: {}, LEDGER: {}, DB: {}, EVENTS: {} } as unknown as Env
  const found = (error: unknown, env: Env | null) => problemOf(error, { method: 'GET', path: '/x' }, env).problem
  const nothing = new TypeError("Cannot read properties of undefined (reading 'getByName')")

  test('is named as the cause of what is unavailable, which stays so', () => {
    const { status, detail, headers } = found(unavailable('Keys cannot be checked.'), { ...bound, DB: undefined } as unknown as Env)
    expect({ status, headers }).toEqual({ status: 503, headers: { 'Retry-After': '5' } })
    expect(detail).toMatch(/^Keys cannot be checked\. The binding DB is missing: add it to wrangler\.toml, .*\.$/)
    expect(found(unavailable('Keys cannot be checked.'), bound).detail).toBe('Keys cannot be checked.')
  })

  test('is named where an object says so of its own, and not where all are there', () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const told = new Error('it failed', { cause: new Error(missingText(['DB'])) })
    expect(found(told, bound)).toMatchObject({ status: 500, type: 'urn:reflex:problem:binding-missing' })
    expect(found(nothing, { ...bound, LEDGER: undefined } as unknown as Env).detail).toMatch(/^The binding LEDGER is missing/)
    expect([found(nothing, bound), found(nothing, null)].map(({ type }) => type)).toEqual(Array(2).fill('urn:reflex:problem:internal'))
  })

  test('hides no bug: the error is in the log, under the id that the answer has', () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const env = { ...bound, LEDGER: undefined } as unknown as Env
    const { problem: shown, instance } = problemOf(nothing, { method: 'GET', path: '/x' }, env)
    expect(shown.type).toBe('urn:reflex:problem:binding-missing')
    expect(instance).toMatch(/^urn:uuid:/)
    const line = JSON.parse(String(log.mock.calls[0]?.[0]))
    expect(line).toMatchObject({ level: 'error', instance, message: nothing.message, stack: expect.stringContaining('TypeError') })
  })
})

test.each([
  ['D1_ERROR: no such table: scopes: SQLITE_ERROR', /apply the migrations: npx wrangler d1 migrations apply DB/],
  ['D1_ERROR: no such column: keys.teaches: SQLITE_ERROR', /apply the migrations/],
  ['no such column: of a scope: SQLITE_ERROR', /^Internal error\./],
])('an answer to %s says what to do about the tables of D1', (message, detail) => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const { problem: shown } = problemOf(new Error('Failed query', { cause: new Error(message) }), { method: 'GET', path: '/x' })
  expect(shown).toMatchObject({ status: 500, type: 'urn:reflex:problem:internal', detail: expect.stringMatching(detail) })
})

describe('an error becomes problem+json', () => {
  test('a Problem as it is, with its headers and those set before', async () => {
    const { response, body } = await answerTo(new Problem({ ...problem, errors: [...problem.errors], headers: { 'Retry-After': '10' } }))
    expect(response.status).toBe(400)
    expect(response.headers.get('Content-Type')).toBe('application/problem+json')
    expect(response.headers.get('Retry-After')).toBe('10')
    expect(response.headers.get('X-Request')).toBe('7')
    expect(body).toEqual({ ...problem })
  })

  test('an HTTPException with its status, message and headers', async () => {
    const res = new Response('x', { headers: { 'WWW-Authenticate': 'Bearer' } })
    const { response, body } = await answerTo(new HTTPException(418, { message: 'short and stout', res }))
    expect(body).toEqual({ type: 'urn:reflex:problem:http-418', title: 'HTTP 418', status: 418, detail: 'short and stout' })
    expect(response.headers.get('WWW-Authenticate')).toBe('Bearer')
    expect(response.headers.get('Content-Type')).toBe('application/problem+json')
  })

  test('a bug as a 500 that tells nothing but where to look', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const { response, body } = await answerTo(new Error('SELECT * FROM keys\nfailed'))
    expect(response.status).toBe(500)
    expect(JSON.stringify(body)).not.toContain('SELECT')
    expect(log).toHaveBeenCalledOnce()
    const line = String(log.mock.calls[0]?.[0])
    expect(line).not.toContain('\n')
    expect(line).not.toContain('ticket')
    expect(JSON.parse(line)).toMatchObject({
      level: 'error',
      instance: body['instance'],
      method: 'GET',
      path: '/x',
      message: 'SELECT * FROM keys\nfailed',
    })
    expect(body['instance']).toMatch(/^urn:uuid:/)
  })

  test('a path that does not exist', async () => {
    const app = new Hono().notFound(handleNotFound)
    const response = await app.request('/v1/evnts', { method: 'POST' })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({
      type: 'urn:reflex:problem:not-found',
      detail: expect.stringMatching(/POST \/v1\/evnts.*\/v1\/docs/),
    })
  })
})

describe('fromZod', () => {
  const schema = z.object({ items: z.array(z.object({ name: z.string() })), 'odd key': z.number() })
  const { error } = schema.safeParse({ items: [{ name: 'a' }, {}], 'odd key': 'x' })

  test('names each place by its path', () => {
    expect(error && fromZod(error).map(({ path }) => path)).toEqual(['items[1].name', '["odd key"]'])
    expect(error && fromZod(error, 7).map(({ index }) => index)).toEqual([7, 7])
  })

  test('names ten places at most', () => {
    const many = z.array(z.string()).safeParse(Array.from({ length: 5000 }, (_, index) => index))
    expect(many.error && fromZod(many.error)).toHaveLength(10)
  })
})

test('an error within a stream shows an id, and its text to the log alone', () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
  const { problem: shown, instance } = problemOf(new Error('no access with hunter2'), { method: 'POST', path: '/x' })
  expect(shown.detail).not.toContain('hunter2')
  expect(instance).toMatch(/^urn:uuid:/)
  expect(logged.mock.calls.flat().join()).toContain('hunter2')
})

describe('a value that fits no alternative', () => {
  const choice = z.union([z.enum(['queue', 'drop']), z.strictObject({ debounce: z.strictObject({ quiet_ms: z.int().min(1) }) })])
  const named = z.union(
    [z.strictObject({ every_s: z.number() }), z.strictObject({ cron: z.string().min(9) })],
    'a timer has every_s or cron',
  )
  const several = z.union([z.strictObject({ id: z.string() }), z.array(z.strictObject({ id: z.string() })).max(1)])
  test.each([
    [several, [{ id: 'a' }, { id: 'b' }], '', expect.stringContaining('<=1')],
    [choice, 'sometimes', '', 'must be one of "queue", "drop", an object'],
    [choice, { later: 1 }, '', 'must be one of "queue", "drop", an object with debounce'],
    [choice, { debounce: { quiet_ms: 0 } }, 'debounce.quiet_ms', expect.stringContaining('>=1')],
    [named, { cron: 'daily' }, 'cron', expect.stringContaining('>=9')],
    [named, {}, '', 'a timer has every_s or cron'],
  ])('%#: is answered with the choices, or with the flaws within the one that it means', (schema: z.ZodType, value, path, message) => {
    const { error } = schema.safeParse(value)
    expect(error && fromZod(error)).toEqual([{ path, message }])
  })
})
