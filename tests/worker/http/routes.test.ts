import { createExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import { inPath } from '../../../client/index.ts'
import { createClient } from '../../../client/routes.ts'
import { app } from '../../support/worker.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import type { QueueMessage } from '../../../src/env.ts'
import { outcomeText } from '../../../src/traces/entries/sentences.ts'
import { features } from '../../../src/features/index.ts'
import { deploymentReport } from '../../../src/http/operations/deployment.ts'
import { descriptionFlaws } from '../../support/description-flaws.ts'
import {
  adminKey,
  call,
  callWith,
  problem,
  fetchRaw,
  keyFor,
  message,
  request,
  scopePath,
  workerFetch,
  type Call,
} from '../../support/http.ts'
import { freshScope, stubOf, until } from '../../support/scopes.ts'
import { behaviours } from '../../support/test-agents.ts'

const ADMIN: Principal = { name: 'test', key_id: 'admin', roles: ['admin'], scopes: ['*'] }
const ndjson = 'application/x-ndjson'
const cloud = 'application/cloudevents+json'
const cloudBatch = 'application/cloudevents-batch+json'
const cloudMessage = (fields: object = {}) => ({
  specversion: '1.0',
  id: crypto.randomUUID(),
  source: '/chat',
  type: 'ws.message',
  data: { connection_id: 'alice', content: 'hello' },
  ...fields,
})
const traceId = /^[0-9a-f]{32}$/
const anyText: unknown = expect.any(String)

const direct = (scope: string, query = '') => scopePath(scope, `/events${query}`)
const settle = (scope: string, json: unknown) => call(direct(scope, '?wait=outcome'), { json })

test.each([
  ['/v1/scopes/team%2Fa/log?limt=5', 'limt', 'limit'],
  ['/v1/scopes?serch=a', 'serch', 'search'],
  ['/v1/dlq?scop=a', 'scop', 'scope'],
  ['/v1/approvals?state=pending', 'state', 'status'],
])('an unknown parameter is refused, and the nearest one is named: %s', async (path, name, nearest) => {
  const { status, body } = await call(path)
  expect([status, body.detail]).toEqual([
    400,
    expect.stringMatching(`^There is no parameter ${name}: the nearest is ${nearest}\\. The others are `),
  ])
})

test('the outcome of an event in a scope that no agent serves says so, also where people read it', async () => {
  const scope = `nobody/${crypto.randomUUID()}`
  const { events } = (await settle(scope, message())).body
  const why = 'no agent of this deployment serves the scope, and its settings have no instructions'
  expect(events[0].outcome).toMatchObject({ by: 'turn', idle: true, why })
  expect(outcomeText(events[0].outcome)).toBe(`Nothing was considered: ${why}`)
  await call(scopePath(scope), { method: 'PATCH', json: { instructions: 'Answer.', when: 'last_1m.total > 100' } })
  const next = (await settle(scope, message())).body.events[0].outcome
  expect(next).toMatchObject({ idle: true, why: 'the condition `when` of its settings does not hold' })
})

describe.each(['by the queue', 'directly'])('events sent %s', (way) => {
  const queued = way === 'by the queue'
  const path = (scope: string) => (queued ? '/v1/events' : direct(scope))

  test.each([
    ['one', { json: message() }, 1],
    ['an array', { json: [message(), message()] }, 2],
    ['lines', { type: ndjson, body: `${JSON.stringify(message())}\n\n${JSON.stringify(message())}\n` }, 2],
    ['a CloudEvent', { type: cloud, json: cloudMessage() }, 1],
    ['a batch of CloudEvents', { type: cloudBatch, json: [cloudMessage(), cloudMessage()] }, 2],
    [
      'a CloudEvent in binary mode',
      {
        json: { connection_id: 'alice', content: 'hello' },
        headers: { 'ce-specversion': '1.0', 'ce-id': crypto.randomUUID(), 'ce-source': '/chat', 'ce-type': 'ws.message' },
      },
      1,
    ],
  ])('as %s are taken', async (form, input, count) => {
    const scope = queued ? 'default' : freshScope()
    const { status, body } = await call(path(scope), input)
    expect(status).toBe(202)
    expect(body).toEqual({ accepted: count, events: Array.from({ length: count }, () => expect.anything()) })
    for (const receipt of body.events) {
      expect(receipt).toEqual({
        id: expect.any(String),
        sent_id: form.includes('CloudEvent') ? anyText : undefined,
        scope,
        trace_id: expect.stringMatching(traceId),
        status: queued ? 'queued' : 'accepted',
      })
    }
  })

  test('twice, in a batch or in another call, are duplicates', async () => {
    const scope = freshScope()
    const id = crypto.randomUUID()
    const fresh = queued ? 'queued' : 'accepted'
    const first = await call(path(scope), { json: [message({ scope, id }), message({ scope }), message({ scope, id, content: 'other' })] })
    expect(first.body).toMatchObject({ accepted: 2, events: [{ status: fresh }, { status: fresh }, { id, status: 'duplicate' }] })
    const second = await call(path(scope), { json: message({ scope, id }) })
    const { trace_id } = first.body.events[0]
    expect(first.body.events[2].trace_id).toBe(trace_id)
    expect(second).toMatchObject({ status: 202, body: { accepted: 0, events: [{ id, trace_id, status: 'duplicate' }] } })
  })

  test('as CloudEvents with one id from two sources are two events, and each is a duplicate when it is sent again', async () => {
    const scope = freshScope()
    const id = crypto.randomUUID()
    const send = (source: string) => call(path(scope), { type: cloud, json: cloudMessage({ subject: scope, id, source }) })
    const [one, two, again] = [await send('/one'), await send('/two'), await send('/one')]
    expect([one, two, again].map(({ body }) => body.accepted)).toEqual([1, 1, 0])
    const [first, second, third] = [one, two, again].map(({ body }) => body.events[0])
    expect(third).toEqual({ ...first, status: 'duplicate' })
    for (const [receipt, source] of [
      [first, '/one'],
      [second, '/two'],
    ]) {
      const record = await until(() => stubOf(scope).event(receipt.id), 'it arrives')
      expect(record?.event).toMatchObject({ source, meta: { sent_id: id } })
    }
  })

  test('as a CloudEvent that an older version stored under its own id are duplicates', async () => {
    const scope = freshScope()
    const id = crypto.randomUUID()
    await call(direct(scope), { json: message({ scope, id, source: '/shop' }) })
    const resent = await call(path(scope), { type: cloud, json: cloudMessage({ subject: scope, id, source: '/shop' }) })
    const other = await call(path(scope), { type: cloud, json: cloudMessage({ subject: scope, id, source: '/other' }) })
    expect(resent.body.accepted).toBe(queued ? 1 : 0)
    expect(resent.body.events[0].sent_id).toBe(id)
    await until(() => stubOf(scope).event(other.body.events[0].id), 'the other one arrives')
    await until(async () => (await stubOf(scope).state()).counters.duplicates === 1, 'the first one is counted')
    expect((await stubOf(scope).state()).counters.accepted).toBe(2)
  })

  test('carry their trace', async () => {
    const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
    const headers = { traceparent: `00-${trace_id}-00f067aa0ba902b7-01` }
    const { body } = await call(path(freshScope()), { json: message(), headers })
    expect(body.events[0].trace_id).toBe(trace_id)
  })

  const bad: [string, Call, number, string, object?][] = [
    ['malformed JSON', { body: '{"type": "ws.message",' }, 400, 'malformed-body'],
    ['an empty body', { body: '' }, 400, 'malformed-body'],
    ['no body', { method: 'POST', type: null }, 415, 'unsupported-media-type'],
    ['another Content-Type', { body: 'hello', type: 'text/plain' }, 415, 'unsupported-media-type'],
    ['no Content-Type', { body: JSON.stringify(message()), type: null }, 415, 'unsupported-media-type'],
    ['another charset', { json: message(), type: 'application/json; charset=utf-16' }, 415, 'unsupported-media-type'],
    ['bytes that are no text', { body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, 'invalid-utf8'],
    [
      'an unknown type',
      { json: { type: 'no.such' } },
      400,
      'unknown-type',
      { errors: [{ path: 'type', message: expect.stringContaining('ws.message') }] },
    ],
    ['no type', { json: { content: 'hello' } }, 400, 'invalid-event', { errors: [{ path: 'type' }] }],
    ['a missing field', { json: message({ content: undefined }) }, 400, 'invalid-event', { errors: [{ path: 'content' }] }],
    ['a day without its time', { json: message({ timestamp: '2026-11-21' }) }, 400, 'invalid-event', { errors: [{ path: 'timestamp' }] }],
    ['a bad scope name', { json: message({ scope: 'a b' }) }, 400, 'invalid-event', { errors: [{ path: 'scope' }] }],
    ['a text', { json: 'hello' }, 400, 'invalid-event'],
    ['no events', { json: [] }, 400, 'wrong-event-count'],
    ['too many events', { json: Array.from({ length: 1001 }, () => 1) }, 400, 'wrong-event-count'],
    [
      'a bad one in a batch',
      { json: [message(), message({ content: 1 }), 7] },
      400,
      'invalid-event',
      {
        errors: [
          { index: 1, path: 'content' },
          { index: 2, path: '' },
        ],
      },
    ],
    [
      'a bad line',
      { type: ndjson, body: `${JSON.stringify(message())}\n{"type":\n` },
      400,
      'malformed-body',
      { errors: [{ index: 1, message: expect.stringContaining('line 2') }] },
    ],
    [
      'a CloudEvent of another version',
      { type: cloud, json: cloudMessage({ specversion: '0.3' }) },
      400,
      'invalid-event',
      { errors: [{ path: 'specversion' }] },
    ],
    ['an event too large', { json: message({ content: 'x'.repeat(100_001) }) }, 413, 'event-too-large'],
    ['a body too large', { json: [message({ content: 'x'.repeat(1024 * 1024) })] }, 413, 'body-too-large'],
  ]
  test.each(bad)('as %s are refused', async (_name, input, status, kind, more = {}) => {
    const scope = freshScope()
    const answer = await call(path(scope), input)
    expect(answer).toMatchObject(problem(status, kind))
    expect(answer.body).toMatchObject(more)
    expect(await call(scopePath(scope))).toMatchObject({ body: { counters: { accepted: 0 } } })
  })
})

describe('events sent by the queue', () => {
  test('are in the log at once, then in their scope, with their outcome', async () => {
    const scope = freshScope()
    const { body } = await call('/v1/events', { json: message({ scope, id: `q-${scope}` }) })
    const [{ id, trace_id }] = body.events
    const found = await call(`/v1/events/${encodeURIComponent(id)}?scope=${encodeURIComponent(scope)}`)
    expect(found.body).toMatchObject({ id, scope, trace_id, type: 'ws.message', source: 'admin', error: null, event: { content: 'hello' } })
    expect(Object.keys(found.body).toSorted()).toEqual([
      'attempts',
      'error',
      'event',
      'id',
      'partial',
      'scope',
      'source',
      'status',
      'timestamp',
      'trace_id',
      'type',
    ])
    await until(
      async () => (await call(scopePath(scope, `/events/${encodeURIComponent(id)}`))).body.status === 'completed',
      'the queue delivers',
    )
    const again = await call(direct(scope), { json: message({ id }) })
    expect(again.body).toMatchObject({ accepted: 0, events: [{ id, status: 'duplicate' }] })
  })

  test('directly before are duplicates in their scope', async () => {
    const scope = freshScope()
    await settle(scope, message({ id: 'one' }))
    expect(await call('/v1/events', { json: message({ scope, id: 'one', content: 'again' }) })).toMatchObject({ status: 202 })
    await until(async () => (await call(scopePath(scope))).body.counters.duplicates === 1, 'the queue delivers')
    expect(await call(scopePath(scope, '/events/one'))).toMatchObject({ body: { event: { content: 'hello' } } })
  })

  test('are refused while the queue is away, and to be sent again', async () => {
    const EVENTS = { sendBatch: async () => Promise.reject(new Error('the queue is away')) }
    const answer = await callWith({ EVENTS }, '/v1/events', { json: message({ scope: freshScope() }) })
    expect(answer).toMatchObject(problem(503, 'unavailable'))
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
  })

  test('are listed one by one if the queue accepted only some, so that the rest can be resent under their ids', async () => {
    const [taken, refused] = [freshScope(), freshScope()]
    let away = true
    const EVENTS = {
      sendBatch: (batch: MessageSendRequest<QueueMessage>[]) =>
        away && batch.some(({ body }) => body.scope === refused)
          ? // As where a call breaks off behind what it did.
            env.EVENTS.sendBatch(batch).then(() => Promise.reject(new Error('the connection broke')))
          : env.EVENTS.sendBatch(batch),
    }
    const events = [taken, refused].flatMap((scope) =>
      [1, 2, 3].map((index) => ({ ...message({ content: `${index}`.repeat(70_000) }), scope })),
    )
    const answer = await callWith({ EVENTS }, '/v1/events', { json: events })
    expect(answer).toMatchObject(problem(503, 'unavailable'))
    const { receipts } = answer.body as { receipts: { id: string; scope: string; trace_id: string; status: string }[] }
    expect(receipts.map(({ scope, status }) => ({ scope, status }))).toEqual(
      events.map(({ scope }) => ({ scope, status: scope === taken ? 'queued' : 'unknown' })),
    )
    away = false
    const rest = events.flatMap((event, index) => (receipts[index]?.status === 'unknown' ? [{ ...event, id: receipts[index].id }] : []))
    expect(await callWith({ EVENTS }, '/v1/events', { json: rest })).toMatchObject({ status: 202 })
    for (const scope of [taken, refused]) {
      await until(async () => (await call(scopePath(scope))).body.counters.completed === 3, 'all are delivered')
      expect((await call(scopePath(scope))).body.counters.accepted).toBe(3)
    }
  })

  test('whose sweep cannot be promised are refused, each to be sent again', async () => {
    vi.setSystemTime(Date.now() + 60_000)
    const SWEEPER = { getByName: () => ({ arm: async () => Promise.reject(new Error('no sweeper')) }) }
    const answer = await callWith({ SWEEPER }, '/v1/events', { json: message({ id: 'a', scope: freshScope() }) })
    vi.useRealTimers()
    expect(answer).toMatchObject(problem(503, 'unavailable'))
    expect(answer.body.receipts).toMatchObject([{ id: 'a', status: 'unknown' }])
  })
})

describe('events sent directly', () => {
  test('are answered with their outcomes, on request', async () => {
    const scope = freshScope()
    behaviours.set(scope, async () => ({ said: 'yes' }))
    const { status, body } = await settle(scope, [message({ id: 'a' }), message({ id: 'b' })])
    expect(status).toBe(200)
    expect(body).toMatchObject({ accepted: 2, events: [{ id: 'a' }, { id: 'b' }] })
    expect(body.events[0]).toEqual({
      id: 'a',
      scope,
      trace_id: expect.stringMatching(traceId),
      status: 'completed',
      attempts: 1,
      error: null,
      outcome: { by: 'turn', turn_id: expect.any(String), log_seq: expect.any(Number), result: { said: 'yes' } },
    })
    const again = await settle(scope, message({ id: 'a' }))
    expect(again).toMatchObject({ status: 200, body: { accepted: 0, events: [{ id: 'a', status: 'completed' }] } })
  })

  test('are answered with the receipt alone, if another key sent them first and the key is no viewer', async () => {
    const scope = freshScope('chat')
    const wait = async (id: string, key: string) => call(direct(scope, '?wait=outcome'), { json: message({ id, connection_id: 'm' }), key })
    const [theirs, own] = [crypto.randomUUID(), crypto.randomUUID()]
    const [sender, publisher, viewer] = await Promise.all(
      [['publisher'], ['publisher'], ['publisher', 'viewer']].map((roles) => keyFor(roles)),
    )
    const first = await wait(theirs, sender!)
    expect(first).toMatchObject({ status: 200, body: { events: [{ outcome: { by: expect.any(String) } }] } })
    const { trace_id } = first.body.events[0]
    const receipt = { id: theirs, scope, trace_id, status: 'duplicate', waiting: null }
    expect(await wait(theirs, publisher!)).toMatchObject({ status: 202, body: { accepted: 0, events: [receipt] } })
    expect((await wait(theirs, publisher!)).body.events).toEqual([receipt])
    for (const key of [sender!, viewer!]) expect((await wait(theirs, key)).body.events).toEqual(first.body.events)
    expect(await wait(own, publisher!)).toMatchObject({ status: 200, body: { accepted: 1 } })
  })

  test('are answered with receipts when that takes too long', async () => {
    const scope = freshScope()
    const { promise, resolve } = Promise.withResolvers<null>()
    behaviours.set(scope, () => promise)
    const { status, body } = await call(direct(scope, '?wait=outcome&timeout_ms=50'), { json: message() })
    expect({ status, body }).toMatchObject({ status: 202, body: { accepted: 1, events: [{ status: 'accepted' }] } })
    resolve(null)
  })

  test.each(['?wait=forever', '?wait=outcome&timeout_ms=0', '?timeout_ms=30001', '?timeout_ms=soon'])(
    'with %s are refused',
    async (query) => {
      expect(await call(direct(freshScope(), query), { json: message() })).toMatchObject(problem(400, 'invalid-request'))
    },
  )

  test('are refused by a full inbox, all of them', async () => {
    const scope = freshScope()
    await call(scopePath(scope), { method: 'PATCH', json: { consumer: 'pull', inbox_limit: 2 } })
    expect(await call(direct(scope), { json: message() })).toMatchObject({ status: 202 })
    const answer = await call(direct(scope), { json: [message(), message()] })
    expect(answer).toMatchObject(problem(429, 'inbox-full'))
    expect(answer.body.detail).toContain('1 of 2 events')
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
    expect((await call(scopePath(scope))).body.inbox.pending).toBe(1)
  })

  test('must be of the scope in the path', async () => {
    const answer = await call(direct(freshScope()), { json: message({ scope: 'other' }) })
    expect(answer).toMatchObject(problem(400, 'invalid-event'))
  })

  test.each(['a%20b', 'a%00b', 'x'.repeat(129), '%E2%9C%93', '%2a'])('to the scope %s are refused', async (scope) => {
    expect(await call(`/v1/scopes/${scope}/events`, { json: message() })).toMatchObject(problem(400, 'invalid-scope'))
  })
})

describe('the log of events', () => {
  test('is filtered, and paged without a gap, newest first by acceptance whatever time an event says', async () => {
    const scope = freshScope()
    const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`
    const began = new Date().toISOString()
    await call('/v1/events', { json: [4, 2, 0, 1, 3].map((minute, index) => message({ scope, id: `e${index}`, timestamp: at(minute) })) })
    const ids = async (query: string): Promise<string[]> =>
      (await call(`/v1/events?scope=${encodeURIComponent(scope)}${query}`)).body.items.map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual(['e4', 'e3', 'e2', 'e1', 'e0'])
    expect(await ids(`&since=${began}&type=ws.message`)).toHaveLength(5)
    expect(await ids(`&since=${at(1)}&until=${began.replace('Z', '%2B00:00')}`)).toEqual([])
    expect(await ids('&type=timer.tick')).toEqual([])
    const first = await call(`/v1/events?scope=${encodeURIComponent(scope)}&limit=3`)
    expect(first.body.items).toHaveLength(3)
    expect(await ids(`&limit=3&cursor=${first.body.next_cursor}`)).toEqual(['e1', 'e0'])
    const whole = await call(`/v1/events?scope=${encodeURIComponent(scope)}&limit=5`)
    expect(whole.body.next_cursor).toBeNull()
    await until(async () => (await ids('&status=completed')).length === 5, 'the scope tells D1')
    expect(await ids('&status=queued')).toEqual([])
    expect(await ids('')).toEqual(['e4', 'e3', 'e2', 'e1', 'e0'])
    const lines = async (query: string) =>
      (await call(`/v1/events/replay?scope=${encodeURIComponent(scope)}${query}`)).text.trim().split('\n')
    const replayed = (await lines(`&start=${at(1)}&end=2026-01-01T01:04:00%2B01:00`)).map((line): string => JSON.parse(line).id)
    expect(replayed, 'by their own times').toEqual(['e3', 'e1', 'e4'])
    const key = await keyFor(['viewer'], [freshScope()])
    expect((await call('/v1/events/replay', { key })).text.trim(), 'of other scopes').toBe('')
  })

  test.each(['limit=0', 'limit=1001', 'limit=x', 'status=done', 'since=yesterday', 'cursor=x', 'scope=a%20b'])(
    'refuses %s',
    async (query) => {
      const answer = await call(`/v1/events?${query}`)
      expect(answer).toMatchObject(problem(400, 'invalid-request'))
      expect(answer.body.errors[0].path).toBe(query.split('=')[0])
    },
  )

  test('is replayed as lines, oldest first, and stays as it is', async () => {
    const scope = freshScope()
    const ids = Array.from({ length: 250 }, (_, index) => `r${String(index).padStart(3, '0')}`)
    const stamp = (index: number) => new Date(Date.UTC(2025, 0, 1) + index * 1000).toISOString()
    await call('/v1/events', { json: ids.map((id, index) => message({ scope, id, timestamp: stamp(index) })).toReversed() })
    const replay = async (query = '') => {
      const { status, type, text } = await call(`/v1/events/replay?scope=${encodeURIComponent(scope)}${query}`)
      expect({ status, type }).toEqual({ status: 200, type: ndjson })
      const lines = text.split('\n').filter((line) => line !== '')
      return lines.map((line): string => JSON.parse(line).id)
    }
    expect(await replay()).toEqual(ids)
    expect(await replay(`&start=${stamp(10)}&end=${stamp(13)}`)).toEqual(['r010', 'r011', 'r012'])
    expect(await replay('&types=timer.tick,%20ws.message')).toHaveLength(250)
    expect(await replay('&types=timer.tick')).toEqual([])
    expect(await call('/v1/events/replay?start=monday')).toMatchObject(problem(400))
  })

  test('answers 503 while D1 is away', async () => {
    const DB = { prepare: () => ({ bind: () => ({ all: async () => Promise.reject(new Error('D1_ERROR: Network connection lost.')) }) }) }
    expect(await callWith({ DB }, '/v1/events')).toMatchObject(problem(503, 'unavailable'))
  })
})

describe('a binding that is missing', () => {
  test.each([
    ['DB', 'GET', '/v1/events'],
    ['DB', 'GET', '/v1/scopes'],
    ['DB', 'POST', '/v1/keys'],
    ['SCOPE', 'GET', '/v1/scopes/nobody'],
    ['LEDGER', 'GET', '/v1/ledger/accounts/scope:nobody'],
  ])('%s is named by %s %s, with what to do', async (name, method, path) => {
    const json = { '/v1/keys': { name: 'k', roles: ['viewer'], scopes: ['*'] } }[path]
    const answer = await callWith({ [name]: undefined }, path, { method, ...(method === 'POST' && { json }) })
    expect(answer).toMatchObject(problem(500, 'binding-missing'))
    expect(answer.body.detail).toMatch(new RegExp(`^The binding ${name} is missing: add it to wrangler.toml`))
  })

  test('is named beside the receipts of what the queue did not take', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const answer = await callWith({ EVENTS: undefined }, '/v1/events', { json: message() })
    expect(answer).toMatchObject(problem(503, 'unavailable'))
    expect(answer.body).toMatchObject({ detail: expect.stringContaining('The binding EVENTS is missing: add it'), receipts: [{}] })
  })

  test.each([
    ['DB', 'database'],
    ['EVENTS', 'queue'],
  ])('%s is named by the health of the %s', async (name, part) => {
    for (const [path, status] of [
      ['/health/ready', 503],
      ['/health/detailed', 200],
    ] as const) {
      const { body, ...answer } = await callWith({ [name]: undefined }, path)
      expect({ ...answer, part: body[part] }).toMatchObject({
        status,
        part: { ok: false, error: expect.stringContaining(`binding ${name} is missing`) },
      })
    }
  })

  test('is not blamed for an error of another cause', async () => {
    const DB = { prepare: () => ({ bind: () => ({ all: async () => Promise.reject(new TypeError('x is not a function')) }) }) }
    vi.spyOn(console, 'error').mockImplementation(() => {})
    expect(await callWith({ DB, LEDGER: undefined }, '/v1/events')).toMatchObject(problem(500, 'internal'))
  })
})

describe('health', () => {
  test('is open, and says little', async () => {
    expect(await call('/health', { key: null })).toMatchObject({ status: 200, body: { status: 'ok' } })
    const ready = await call('/health/ready', { key: null })
    expect(ready).toMatchObject({
      status: 200,
      body: { status: 'ready', database: { ok: true, error: null }, queue: { ok: true }, model: { ok: true, error: null } },
    })
  })

  test.each([
    ['database', { DB: { prepare: () => ({ first: async () => Promise.reject(new Error('D1 is away')) }) } }, 'D1 is away'],
    ['queue', { EVENTS: { metrics: async () => Promise.reject(new Error('no queue')) } }, 'no queue'],
    ['queue', { EVENTS: { metrics: () => new Promise(() => {}) } }, 'within'],
    ['queue', { EVENTS: {} }, 'not a function'],
    ['model', { REFLEX_MODEL: 'gpt-5-mini' }, 'none of the known forms'],
    ['model', { REFLEX_MODEL: 'openai-compatible/gpt-5-mini' }, 'OPENAI_COMPATIBLE_BASE_URL is missing'],
    ['model', { REFLEX_MODEL: 'workers-ai/@cf/openai/gpt-oss-20b' }, 'the AI binding is missing'],
    ['model', { REFLEX_DECISION_MODEL: 'workers-ai/@cf/cloudflare/clef' }, 'The decision model "workers-ai/@cf/cloudflare/clef" can'],
    ['model', { REFLEX_DECISION_MODEL: 'system-one' }, 'SYSTEM_ONE_URL is missing'],
  ])('is not ready without its %s', async (part, bindings, reason) => {
    const answer = await callWith(bindings, '/health/ready', { key: null })
    expect(answer).toMatchObject({
      status: 503,
      body: { status: 'unavailable', [part]: { ok: false, error: expect.stringContaining(reason) } },
    })
  })

  test('is asked again after the clock was set back', async () => {
    const first = vi.fn<() => Promise<unknown>>(async () => null)
    const bindings = Object.assign({}, env, { DB: { prepare: () => ({ first }) } })
    const ready = async () => (await app.fetch(new Request('https://reflex.test/health/ready'), bindings, createExecutionContext())).text()
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000)
    await ready()
    const asked = first.mock.calls.length
    clock.mockRestore()
    await ready()
    expect(asked).toBeGreaterThan(0)
    expect(first.mock.calls.length).toBe(asked * 2)
  })

  test('is reported in detail', async () => {
    const scope = freshScope('depth')
    await call(scopePath(scope), { method: 'PATCH', json: { consumer: 'pull' } })
    await call(direct(scope), { json: [message(), message()] })
    const key = await keyFor(['viewer'], ['depth/*'])
    await until(async () => (await call('/health/detailed', { key })).body.inboxes.open === 2, 'the scope tells D1')
    expect((await call('/health/detailed', { key })).body).toMatchObject({
      status: 'ok',
      database: { ok: true },
      queue: { ok: true },
      inboxes: { scopes: 1, open: 2, largest: [{ scope, open: 2 }] },
      dead_letters: { total: 0, by_origin: { scope: 0, queue: 0 } },
      model: 'offline',
      agents: expect.arrayContaining(['prompted']),
      event_types: expect.arrayContaining(['ws.message', 'timer.tick']),
      deployment: { bindings: { missing: [] }, schema_error: null, secrets: null, assumed_destinations: expect.any(Object) },
    })
  })

  test('names the secrets and what is wrong with them to an admin of every scope, without their values', async () => {
    const { body, text } = await call('/health/detailed')
    expect(body.deployment.secrets).toEqual(
      expect.arrayContaining([
        { name: 'REFLEX_ADMIN_KEY', problem: null },
        { name: 'REFLEX_REDACTION_SECRET', problem: null },
        { name: 'REFLEX_TOOL_TICKETS', problem: null },
        { name: 'REFLEX_TOOL_NOWHERE', problem: expect.stringContaining('REFLEX_TOOL_NOWHERE_HOSTS') },
      ]),
    )
    expect(text).not.toMatch(/test-admin-key|ticket-secret|nowhere-secret/)
  })

  test('names the budgets in money that allow no call, since the model has no price', async () => {
    const variables = { REFLEX_MODEL: 'openai-compatible/new', REFLEX_BUDGETS: '{"scope:*": {"usd_per_day": 1}}' }
    expect((await callWith(variables, '/health/detailed')).body.deployment.unpriced_budgets).toEqual([
      { name: 'REFLEX_BUDGETS["scope:*"]', problem: expect.stringContaining('openai-compatible/new has no price') },
    ])
    expect((await call('/health/detailed')).body.deployment.unpriced_budgets).toEqual([])
  })

  test('tells a key of some scopes the size of what it shares with others only roughly', async () => {
    const key = await keyFor(['admin'], ['team/*'])
    const sizes = async (by: string | undefined) => {
      const options = by === undefined ? {} : { key: by }
      const { retention, deployment, ledger } = (await call('/health/detailed', options)).body
      const { text } = await call('/metrics', options)
      const gauges = [...text.matchAll(/^reflex_(?:database|ledger)_bytes (\d+)$/gm)].map(([, size]) => Number(size))
      return [...gauges, retention.databases[0].database_bytes, deployment.database_bytes, ledger.bytes]
    }
    for (const size of await sizes(undefined)) expect(size).toBeGreaterThan(0)
    expect(await sizes(key)).toEqual([0, 0, 0, 0, 0])
  })

  test('names no budget to a key of some scopes, or that only reads', async () => {
    const variables = { REFLEX_MODEL: 'openai-compatible/new', REFLEX_BUDGETS: '{"scope:tenant-b/*": {"usd_per_day": 1}}' }
    for (const key of [await keyFor(['admin'], ['tenant-a/*']), await keyFor(['viewer'], ['*'])]) {
      const { body, text } = await callWith(variables, '/health/detailed', { key })
      expect(body.deployment.unpriced_budgets).toBeNull()
      expect(text).not.toContain('tenant-b')
    }
  })

  test('names variables that nothing reads to an admin of every scope', async () => {
    expect((await call('/health/detailed')).body.deployment.unknown_variables).toEqual([])
    const misspelt = { REFLEX_EVENT_BYTES: '1' } as Parameters<typeof callWith>[0]
    const unknown_variables = async (key = adminKey) =>
      (await callWith(misspelt, '/health/detailed', { key })).body.deployment.unknown_variables
    expect(await unknown_variables()).toEqual([{ name: 'REFLEX_EVENT_BYTES', nearest: 'REFLEX_EVENTS_BYTES' }])
    expect(await unknown_variables(await keyFor(['admin'], ['team/*']))).toBe(null)
  })

  test('tells D1 that is away from D1 that is outdated, and says how much it holds', async () => {
    const { deployment } = (await call('/health/detailed')).body
    expect(deployment).toMatchObject({ schema: 'fits', schema_error: null, database_bytes: expect.any(Number) })
    expect(deployment.database_bytes).toBeGreaterThan(0)
    const lost = async () => Promise.reject(new Error('D1_ERROR: Network connection lost.'))
    const statement = { bind: () => statement, first: lost, all: lost, run: lost, raw: lost }
    const DB = { prepare: () => statement, batch: lost }
    expect(await deploymentReport({ ...env, DB } as never, ADMIN, { now: 0, features, agents: [] })).toMatchObject({
      schema: 'unknown',
      schema_error: null,
      database_bytes: null,
    })
  })

  test.each(['SCOPE', 'SWEEPER', 'GLOBAL_KEYS', 'LEARNER', 'LEDGER', 'EVENTS', 'DB'])(
    'misses the binding %s where it lacks',
    async (name) => {
      const { bindings } = (await call('/health/detailed')).body.deployment
      expect(bindings.present).toContain(name)
      const lacking = { ...env, [name]: undefined }
      expect((await deploymentReport(lacking as never, ADMIN, { now: 0, features, agents: [] })).bindings.missing).toEqual([name])
    },
  )

  test('counts the rate limiter as unused where it is off', async () => {
    const reported = async (REFLEX_RATE_LIMIT: string) =>
      (await deploymentReport({ ...env, REFLEX_RATE_LIMIT }, ADMIN, { now: 0, features, agents: [] })).bindings
    expect((await reported('on')).present).toContain('RATE_LIMIT')
    const { present, missing, unused } = await reported('off')
    expect([present, missing, unused]).toEqual([expect.not.arrayContaining(['RATE_LIMIT']), [], expect.arrayContaining(['RATE_LIMIT'])])
  })

  test('reports a table of D1 that lacks a column, as before a migration', async () => {
    await env.DB.exec('ALTER TABLE approvals RENAME COLUMN why TO other')
    const { body } = await call('/health/detailed')
    const ready = await callWith({}, '/health/ready', { key: null })
    await env.DB.exec('ALTER TABLE approvals RENAME COLUMN other TO why')
    expect(body.deployment).toMatchObject({ schema: 'outdated', schema_error: expect.stringMatching(/no such column: approvals\.why/) })
    const error = expect.stringMatching(/no such column: approvals\.why.*; apply the migrations: npx wrangler d1 migrations apply/)
    expect(ready).toMatchObject({ status: 503, body: { status: 'unavailable', database: { ok: false, error } } })
    expect(await callWith({}, '/health/ready', { key: null })).toMatchObject({ status: 200, body: { database: { ok: true, error: null } } })
  })
})

describe('the description', () => {
  test('is OpenAPI 3.1, complete in itself, and names what events are taken', async () => {
    const { status, body, text } = await call('/v1/openapi.json', { key: null })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      openapi: '3.1.0',
      info: { title: 'Reflex' },
      components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
    })
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) expect(body.components.schemas).toHaveProperty(name ?? '')
    expect(text).not.toContain('$defs')
    expect(Object.keys(body.paths['/v1/events'].post.requestBody.content)).toEqual(['application/json', ndjson, cloud, cloudBatch])
    expect(body.components.schemas.EventInput.oneOf[0].required).toEqual(['type', 'connection_id', 'content'])
  })

  test('has nothing that a linter or a generator of clients stumbles over', async () => {
    const { body } = await call('/v1/openapi.json', { key: null })
    expect(descriptionFlaws(body)).toEqual([])
    const ids = [body.paths['/v1/events'].get, body.paths['/v1/events'].post].map(({ operationId }) => operationId)
    expect(ids).toEqual(['listEvents', 'publishEvents'])
    expect(body.paths['/health'].get.security).toEqual([])
    const parameters: { name: string; description: string }[] = body.paths['/v1/scopes/{scope}/events'].post.parameters
    expect(parameters.find(({ name }) => name === 'timeout_ms')?.description).toMatch(/10000 by default and 30000 at most/)
  })

  test('is a page that loads nothing from another host', async () => {
    const { status, type, text, headers } = await call('/v1/docs', { key: null })
    expect({ status, type }).toEqual({ status: 200, type: 'text/html; charset=UTF-8' })
    const policy = headers.get('Content-Security-Policy')
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; /)
    expect(policy).not.toContain('http')
    expect(text).not.toMatch(/(?:src|href)="(?!\/)|<script>|@import|url\(/)
  })

  test('is where one looks first: /openapi.json', async () => {
    const answer = await fetchRaw('/openapi.json', { key: null })
    // Followed: the answer is the page's own.
    expect(answer.status).toBe(200)
  })
})

describe('everything else', () => {
  test('is a problem', async () => {
    expect(await call('/nowhere', { key: null })).toMatchObject(problem(404, 'not-found'))
    expect(await call('/v1/nowhere')).toMatchObject(problem(404, 'not-found'))
    expect(await call('/v1/nowhere', { key: null })).toMatchObject(problem(401))
    const answer = await call('/v1/keys', { method: 'PATCH', json: {} })
    expect(answer).toMatchObject(problem(405, 'method-not-allowed'))
    expect(answer.headers.get('Allow')).toBe('GET, POST')
  })

  test.each(['/health/ready', '/v1/openapi.json', '/v1/docs'])('%s needs no key, and is limited by address', async (path) => {
    const limit = vi.fn<RateLimit['limit']>(async () => ({ success: false }))
    const from = { key: null, headers: { 'CF-Connecting-IP': '203.0.113.7' } }
    expect(await callWith({ RATE_LIMIT: { limit } }, path, from)).toMatchObject(problem(429, 'too-many-requests'))
    expect(limit).toHaveBeenCalledWith({ key: 'open:203.0.113.7' })
  })

  test('readiness asks D1 and the queue once a second, however often it is asked for', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    try {
      const metrics = vi.fn<() => Promise<object>>(async () => ({}))
      const bindings = Object.assign({}, env, { EVENTS: { metrics } })
      const ready = async () => app.fetch(request('/health/ready', { key: null }), bindings, createExecutionContext())
      for (let count = 0; count < 5; count += 1) expect((await ready()).status).toBe(200)
      expect(metrics).toHaveBeenCalledTimes(1)
      vi.setSystemTime(Date.now() + 1000)
      expect((await ready()).status).toBe(200)
      expect(metrics).toHaveBeenCalledTimes(2)
    } finally {
      vi.useRealTimers()
    }
  })

  test('too many requests get a Retry-After', async () => {
    const RATE_LIMIT = { limit: async () => ({ success: false }) }
    const answer = await callWith({ RATE_LIMIT }, '/v1/scopes')
    expect(answer).toMatchObject(problem(429, 'too-many-requests'))
    expect(answer.headers.get('Retry-After')).toBe('10')
    expect(await callWith({ RATE_LIMIT }, scopePath('a', '/ws?ticket=rft_'), { key: null })).toMatchObject(problem(429))
  })
})

test('the client knows the routes and their answers', async () => {
  const scope = freshScope()
  const client = createClient('https://reflex.test', 'test-admin-key', {
    fetch: workerFetch,
  })
  const sent = await client.v1.scopes[':scope'].events.$post({
    param: { scope: inPath(scope) },
    query: { wait: 'outcome' },
    json: message({ id: 'a' }),
  })
  if (sent.status !== 200) throw new Error(await sent.text())
  expect((await sent.json()).events[0]?.outcome?.by).toBe('turn')
  const state = await client.v1.scopes[':scope'].$get({ param: { scope: inPath(scope) } })
  if (!state.ok) throw new Error((await state.json()).detail)
  expect((await state.json()).counters.completed).toBe(1)
  const waiting = await client.v1.approvals.$get({ query: { scope } })
  if (waiting.status !== 200) throw new Error(await waiting.text())
  expect((await waiting.json()).items.map(({ skill_id }) => skill_id)).toEqual([])
})
