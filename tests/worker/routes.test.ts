import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { createClient, inPath } from '../../client/index.ts'
import { call, callWith, fetchRaw, keyFor, message, scopePath, type Answer, type Call } from '../support/http.ts'
import { freshScope, hurry, stubOf, until } from '../support/scopes.ts'
import { behaviours } from '../support/test-agents.ts'

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
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const traceId = /^[0-9a-f]{32}$/

function expectProblem({ status, type, body }: Answer, expected: number, kind?: string): void {
  expect({ status, type }).toEqual({ status: expected, type: 'application/problem+json' })
  expect(body).toMatchObject({ title: expect.any(String), status: expected, detail: expect.any(String) })
  expect(body.type).toBe(kind === undefined ? body.type : `urn:reflex:problem:${kind}`)
}

const direct = (scope: string, query = '') => scopePath(scope, `/events${query}`)
const settle = (scope: string, json: unknown) => call(direct(scope, '?wait=outcome'), { json })

describe.each(['by the queue', 'directly'])('events sent %s', (way) => {
  const queued = way === 'by the queue'
  const path = (scope: string) => (queued ? '/v1/events' : direct(scope))

  test.each([
    ['one', { json: message() }, 1],
    ['an array', { json: [message(), message()] }, 2],
    ['lines', { type: ndjson, body: `${JSON.stringify(message())}\n\n${JSON.stringify(message())}\n` }, 2],
    ['a CloudEvent', { type: cloud, json: cloudMessage() }, 1],
    ['a batch of CloudEvents', { type: cloudBatch, json: [cloudMessage(), cloudMessage()] }, 2],
  ])('as %s are taken', async (_form, input, count) => {
    const scope = queued ? 'default' : freshScope()
    const { status, body } = await call(path(scope), input)
    expect(status).toBe(202)
    expect(body).toEqual({ accepted: count, events: Array.from({ length: count }, () => expect.anything()) })
    for (const receipt of body.events) {
      expect(receipt).toEqual({
        id: expect.any(String),
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
    expect(second).toMatchObject({ status: 202, body: { accepted: 0, events: [{ id, status: 'duplicate' }] } })
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
    [
      'a time without its zone',
      { json: message({ timestamp: '2026-11-21T05:00:00' }) },
      400,
      'invalid-event',
      { errors: [{ path: 'timestamp' }] },
    ],
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
    expectProblem(answer, status, kind)
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
    expectProblem(answer, 503, 'unavailable')
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
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
      expectProblem(await call(direct(freshScope(), query), { json: message() }), 400, 'invalid-request')
    },
  )

  test('are refused by a full inbox, all of them', async () => {
    const scope = freshScope()
    await call(scopePath(scope), { method: 'PATCH', json: { consumer: 'pull', inbox_limit: 2 } })
    expect(await call(direct(scope), { json: message() })).toMatchObject({ status: 202 })
    const answer = await call(direct(scope), { json: [message(), message()] })
    expectProblem(answer, 429, 'inbox-full')
    expect(answer.body.detail).toContain('1 events of 2')
    expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
    expect((await call(scopePath(scope))).body.inbox.pending).toBe(1)
  })

  test('must be of the scope in the path', async () => {
    const answer = await call(direct(freshScope()), { json: message({ scope: 'other' }) })
    expectProblem(answer, 400, 'invalid-event')
  })

  test.each(['a%20b', 'a%00b', 'x'.repeat(129), '%E2%9C%93', '%2a'])('to the scope %s are refused', async (scope) => {
    expectProblem(await call(`/v1/scopes/${scope}/events`, { json: message() }), 400, 'invalid-scope')
  })
})

describe('the log of events', () => {
  test('is filtered, and paged without a gap', async () => {
    const scope = freshScope()
    const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`
    await call('/v1/events', { json: [0, 1, 2, 3, 4].map((minute) => message({ scope, id: `e${minute}`, timestamp: at(minute) })) })
    const ids = async (query: string): Promise<string[]> =>
      (await call(`/v1/events?scope=${encodeURIComponent(scope)}${query}`)).body.items.map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual(['e4', 'e3', 'e2', 'e1', 'e0'])
    expect(await ids(`&since=${at(1)}&until=2026-01-01T01:03:00%2B01:00`)).toEqual(['e2', 'e1'])
    expect(await ids('&type=timer.tick')).toEqual([])
    const first = await call(`/v1/events?scope=${encodeURIComponent(scope)}&limit=3`)
    expect(first.body.items).toHaveLength(3)
    expect(await ids(`&limit=3&cursor=${first.body.next_cursor}`)).toEqual(['e1', 'e0'])
    const whole = await call(`/v1/events?scope=${encodeURIComponent(scope)}&limit=5`)
    expect(whole.body.next_cursor).toBeNull()
    await until(async () => (await ids('&status=completed')).length === 5, 'the scope tells D1')
    expect(await ids('&status=queued')).toEqual([])
  })

  test.each(['limit=0', 'limit=1001', 'limit=x', 'status=done', 'since=yesterday', 'cursor=x', 'scope=a%20b'])(
    'refuses %s',
    async (query) => {
      const answer = await call(`/v1/events?${query}`)
      expectProblem(answer, 400, 'invalid-request')
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
    expectProblem(await call('/v1/events/replay?start=monday'), 400)
  })

  test('answers 503 while D1 is away', async () => {
    const DB = { prepare: () => ({ bind: () => ({ raw: async () => Promise.reject(new Error('D1_ERROR: Network connection lost.')) }) }) }
    expectProblem(await callWith({ DB }, '/v1/events'), 503, 'unavailable')
  })
})

describe('a scope', () => {
  test('shows its state, empty before its first event', async () => {
    const scope = freshScope()
    const { status, body } = await call(scopePath(scope))
    expect(status).toBe(200)
    expect(body).toMatchObject({ scope, agent: 'test-agent', inbox: { pending: 0, processing: 0, delayed: 0 }, turn: null, last_seq: 0 })
    expect(body.settings).toMatchObject({ consumer: 'turn', max_attempts: 3 })
    await settle(scope, message())
    const later = await call(scopePath(scope))
    expect(later.body.counters).toMatchObject({
      accepted: 1,
      duplicates: 0,
      completed: 1,
      ignored: 0,
      dead_lettered: 0,
      cancelled: 0,
      turns: 1,
      effects: 0,
    })
    expect(later.body.last_seq).toBeGreaterThan(0)
  })

  test('with a slash in its name is reached by its encoded name', async () => {
    const scope = `${freshScope()}/labsz`
    expect(scopePath(scope)).toContain('%2F')
    expect((await call(scopePath(scope))).body.scope).toBe(scope)
    expectProblem(await call(`/v1/scopes/${scope}`), 404)
  })

  test('is listed, page by page', async () => {
    const scope = freshScope('list')
    await settle(scope, message())
    const key = await keyFor(['viewer'], ['list/*'])
    await until(async () => (await call('/v1/scopes', { key })).body.items.length > 0, 'the scope tells D1')
    const { body } = await call('/v1/scopes', { key })
    expect(body).toEqual({
      items: [{ scope, agent: 'prompted', open: expect.any(Number), updated_at: expect.stringMatching(time) }],
      next_cursor: null,
    })
    const first = await call('/v1/scopes?limit=1')
    const rest = await call(`/v1/scopes?limit=1000&cursor=${encodeURIComponent(first.body.next_cursor ?? '')}`)
    for (const { scope: name } of rest.body.items) expect(name > first.body.items[0].scope).toBe(true)
  })

  test('takes settings as a merge patch, and refuses what is none', async () => {
    const scope = freshScope()
    const patch = (json: unknown) => call(scopePath(scope), { method: 'PATCH', json })
    expect(await patch({ max_attempts: 7, parameters: { deep: [{ a: null }] } })).toMatchObject({
      status: 200,
      body: { scope, settings: { max_attempts: 7 } },
    })
    expect(await patch({ max_attempts: null })).toMatchObject({
      body: { settings: { max_attempts: 3, parameters: { deep: [{ a: null }] } } },
    })
    for (const bad of [
      { max_attempts: 0 },
      { no_such: 1 },
      [],
      'x',
      null,
      { overlap: 'sometimes' },
      { agent: 'nobody' },
      { when: '1 +' },
    ]) {
      expectProblem(await patch(bad), 400, 'invalid-request')
    }
    expectProblem(await call(scopePath(scope), { method: 'PATCH', body: '{"max_attempts":' }), 400, 'malformed-body')
    expectProblem(await call(scopePath(scope), { method: 'PATCH', body: '{}', type: 'text/plain' }), 415)
    expectProblem(await call(scopePath(scope), { method: 'PATCH', json: { instructions: 'x'.repeat(1024 * 1024) } }), 413)
    expect((await call(scopePath(scope))).body.settings.max_attempts).toBe(3)
  })

  test('shows its context and one event', async () => {
    const scope = freshScope()
    await settle(scope, [message({ id: 'a' }), message({ id: 'b/ü' })])
    const { body } = await call(scopePath(scope, '/context?limit=1'))
    expect(body).toMatchObject({
      scope,
      created_at: expect.stringMatching(time),
      last_action_at: null,
      events: [{ id: 'b/ü' }],
      count: 2,
      scratch: {},
    })
    const one = await call(scopePath(scope, `/events/${encodeURIComponent('b/ü')}`))
    expect(one.body).toEqual({
      event: expect.objectContaining({ id: 'b/ü', scope, content: 'hello' }),
      status: 'completed',
      attempts: 1,
      error: null,
      outcome: expect.objectContaining({ by: 'turn', result: null }),
      accepted_at: expect.stringMatching(time),
      ended_at: expect.stringMatching(time),
    })
    expectProblem(await call(scopePath(scope, '/events/none')), 404, 'not-found')
  })

  test('has a log that is read page by page', async () => {
    const scope = freshScope()
    await settle(scope, [message(), message(), message()])
    const whole = await call(scopePath(scope, '/log'))
    expect(whole.type).toBe('application/json')
    expect(whole.body.next_cursor).toBeNull()
    for (const entry of whole.body.items) {
      expect(entry).toMatchObject({
        seq: expect.any(Number),
        at: expect.stringMatching(time),
        kind: expect.any(String),
        event_ids: expect.any(Array),
      })
      expect(entry).toHaveProperty('trace_id')
      expect(entry).toHaveProperty('duration_ms')
    }
    const seen: unknown[] = []
    let after: string | null = '0'
    while (after !== null) {
      const { body } = await call(scopePath(scope, `/log?after=${after}&limit=2`))
      seen.push(...body.items)
      after = body.next_cursor
    }
    expect(seen).toEqual(whole.body.items)
    expectProblem(await call(scopePath(scope, '/log?limit=1001')), 400)
    expectProblem(await call(scopePath(scope, '/log?after=-1')), 400)
  })

  test('stops the turn in flight', async () => {
    const scope = freshScope()
    behaviours.set(scope, () => new Promise(() => {}))
    await call(direct(scope), { json: message({ id: 'a' }) })
    await until(async () => (await call(scopePath(scope))).body.turn, 'the turn begins')
    const { body } = await call(scopePath(scope))
    expect(body.turn).toEqual({ turn_id: expect.any(String), since: expect.stringMatching(time), events: 1 })
    const cancelled = await call(scopePath(scope, '/cancel'), { json: { reason: 'enough' } })
    expect(cancelled).toMatchObject({ status: 200, body: { cancelled: true, turn_id: body.turn.turn_id, events: 1 } })
    const event = await call(scopePath(scope, '/events/a'))
    expect(event.body).toMatchObject({ status: 'cancelled', outcome: { by: 'cancel', reason: 'enough' } })
    const idle = { cancelled: false, turn_id: null, events: 0 }
    for (const input of [{ method: 'POST' }, { method: 'POST', body: '' }, { json: {} }]) {
      expect(await call(scopePath(scope, '/cancel'), input)).toMatchObject({ status: 200, body: idle })
    }
    expectProblem(await call(scopePath(scope, '/cancel'), { json: { why: 'typo' } }), 400)
    expectProblem(await call(scopePath(scope, '/cancel'), { body: 'because', type: 'text/plain' }), 415)
  })
})

describe('live', () => {
  async function connect(
    scope: string,
    { key, query = '', headers = {} }: { key?: string; query?: string; headers?: Record<string, string> } = {},
  ) {
    const response = await fetchRaw(scopePath(scope, `/ws${query}`), {
      headers: { Upgrade: 'websocket', ...headers },
      ...(key ? { key } : {}),
    })
    const socket = response.webSocket
    if (!socket) throw new Error(`no socket: ${response.status}`)
    const frames: {
      type: string
      id?: string
      status?: string
      entry?: { kind: string; seq: number; event_type?: string; source?: string }
      errors?: unknown
    }[] = []
    socket.addEventListener('message', ({ data }) => frames.push(JSON.parse(String(data))))
    socket.accept()
    return { socket, frames, find: (type: string) => until(async () => frames.find((frame) => frame.type === type), `a frame ${type}`) }
  }

  test('a socket takes events and tells of everything', async () => {
    const scope = freshScope()
    const { socket, frames, find } = await connect(scope, { query: '?connection_id=bob' })
    socket.send(JSON.stringify({ id: 'one', content: 'hello' }))
    expect(await find('ack')).toEqual({ type: 'ack', id: 'one', status: 'accepted' })
    await until(async () => frames.some(({ entry }) => entry?.kind === 'event-ended'), 'it ends')
    expect(await call(scopePath(scope, '/events/one'))).toMatchObject({ body: { event: { connection_id: 'bob', source: 'ws:bob' } } })
    socket.send('{')
    expect(await find('error')).toMatchObject({ errors: [{ message: expect.any(String) }] })
    socket.close()
  })

  test('a viewer only receives, and resumes from where it was', async () => {
    const scope = freshScope()
    await settle(scope, message())
    const key = await keyFor(['viewer'])
    const { socket, frames, find } = await connect(scope, { key, query: '?after=1' })
    await find('log')
    expect(frames[0]?.entry?.seq).toBe(2)
    socket.send(JSON.stringify({ content: 'hello' }))
    expect(await find('error')).toMatchObject({ errors: [{ message: expect.stringContaining('publisher') }] })
    socket.close()
  })

  test('what a caller says of itself in headers is not believed', async () => {
    const scope = freshScope()
    const key = await keyFor(['viewer'], ['*'], 'ünïcode ✓')
    const forged = JSON.stringify({ connection_id: 'root', source: 'root', may_send: true, after: null })
    const { socket, find } = await connect(scope, { key, headers: { 'x-reflex-connect': forged } })
    socket.send(JSON.stringify({ content: 'hello' }))
    expect(await find('error')).toMatchObject({ errors: [{ message: expect.stringContaining('publisher') }] })
    socket.close()
  })

  test('a request that is no upgrade is told so', async () => {
    const answer = await call(scopePath(freshScope(), '/ws'))
    expectProblem(answer, 426, 'upgrade-required')
    expect(answer.headers.get('Upgrade')).toBe('websocket')
  })

  test.each(['after=-1', 'after=x', 'connection_id='])('a socket with %s is refused', async (query) => {
    expectProblem(await call(scopePath(freshScope(), `/ws?${query}`), { headers: { Upgrade: 'websocket' } }), 400)
  })

  test('a stream resumes by Last-Event-ID', async () => {
    const scope = freshScope()
    await settle(scope, [message(), message()])
    const read = async (path: string, headers: Record<string, string> = {}) => {
      const response = await fetchRaw(scopePath(scope, path), { headers })
      expect(response.headers.get('Content-Type')).toContain('text/event-stream')
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
      let text = ''
      await until(async () => ((text += (await reader?.read())?.value ?? ''), text.includes('event: log')), 'an event of the log')
      await reader?.cancel()
      return Array.from(text.matchAll(/^id: (\d+)$/gm), ([, id]) => Number(id))
    }
    expect((await read('/stream?after=0'))[0]).toBe(1)
    expect((await read('/stream?after=1', { 'Last-Event-ID': '2' }))[0]).toBe(3)
  })
})

describe('the pull loop', () => {
  const post = (scope: string, rest: string, json: unknown) => call(scopePath(scope, rest), { json })
  async function pulled() {
    const scope = freshScope()
    await call(scopePath(scope), { method: 'PATCH', json: { consumer: 'pull', max_attempts: 2 } })
    return scope
  }

  test('claims, acknowledges and gives back', async () => {
    const scope = await pulled()
    await call(direct(scope), { json: [message({ id: 'a' }), message({ id: 'b' }), message({ id: 'c' })] })
    const claimed = await post(scope, '/claim', { limit: 2, lease_s: 60 })
    expect(claimed).toMatchObject({
      status: 200,
      body: { deliveries: [{ event: { id: 'a', content: 'hello' }, attempts: 1 }, { event: { id: 'b' } }] },
    })
    const [a, b] = claimed.body.deliveries.map(({ ack_token }: { ack_token: string }) => ack_token)
    expect(await post(scope, '/ack', { ack_tokens: [a, 'stale'] })).toMatchObject({ status: 200, body: { acked: [a], stale: ['stale'] } })
    expect(await call(scopePath(scope, '/events/a'))).toMatchObject({ body: { status: 'completed', outcome: { by: 'pull' } } })
    const back = await post(scope, '/nack', { ack_token: b, error: 'no paper' })
    expect(back).toMatchObject({ status: 200, body: { status: 'pending', due_at: expect.stringMatching(time) } })
    expectProblem(await post(scope, '/nack', { ack_token: b }), 409, 'stale-token')
    expect(await post(scope, '/ack', { ack_tokens: [a] })).toMatchObject({ body: { acked: [], stale: [a] } })
    await hurry(stubOf(scope))
    const rest = await call(scopePath(scope, '/claim'), { method: 'POST' })
    expect(rest.body.deliveries.map(({ event }: { event: { id: string } }) => event.id).toSorted()).toEqual(['b', 'c'])
  })

  test('claims by type', async () => {
    const scope = await pulled()
    await call(direct(scope), { json: [message({ id: 'a' }), { type: 'timer.tick', timer_name: 't', id: 't' }] })
    expect(await post(scope, '/claim', { types: ['timer.tick'] })).toMatchObject({ body: { deliveries: [{ event: { id: 't' } }] } })
  })

  test('is not for a scope that runs its own turns', async () => {
    expectProblem(await post(freshScope(), '/claim', {}), 409, 'not-pull')
  })

  test.each([
    ['/claim', { limit: 0 }],
    ['/claim', { limit: 1001 }],
    ['/claim', { lease_s: 0 }],
    ['/claim', { lease_s: 43_201 }],
    ['/claim', { types: [] }],
    ['/claim', { limits: 1 }],
    ['/ack', {}],
    ['/ack', { ack_tokens: [] }],
    ['/ack', { ack_tokens: 'x' }],
    ['/ack', { ack_tokens: Array.from({ length: 1001 }, () => 'x') }],
    ['/nack', {}],
    ['/nack', { ack_token: 1 }],
  ])('refuses %s with %j', async (rest, json) => {
    expectProblem(await post(await pulled(), rest, json), 400, 'invalid-request')
  })
})

describe('a timer', () => {
  const put = (scope: string, name: string, json: unknown) => call(scopePath(scope, `/timers/${name}`), { method: 'PUT', json })

  test('is created, changed, shown and removed', async () => {
    const scope = freshScope()
    const timer = { name: 'daily', schedule: { every_s: 3600 }, next_at: expect.stringMatching(time), fired: 0 }
    expect(await put(scope, 'daily', { every_s: 3600 })).toMatchObject({ status: 201, body: timer })
    const { body: created } = await call(scopePath(scope, '/timers/daily'))
    expect(created).toEqual(timer)
    expect(await put(scope, 'daily', { every_s: 3600 })).toMatchObject({ status: 200, body: created })
    expect(await put(scope, 'daily', { cron: '0 6 * * *' })).toMatchObject({ status: 200, body: { schedule: { cron: '0 6 * * *' } } })
    expect(await put(scope, 'a.b:c-d_9', { at: '2099-01-01T00:00:00Z' })).toMatchObject({ status: 201 })
    const listed = await call(scopePath(scope, '/timers'))
    expect(listed.body).toMatchObject({ items: [{ name: 'a.b:c-d_9' }, { name: 'daily' }], next_cursor: null })
    expect(await call(scopePath(scope, '/timers/daily'), { method: 'DELETE' })).toMatchObject({ status: 204, text: '' })
    expectProblem(await call(scopePath(scope, '/timers/daily'), { method: 'DELETE' }), 404)
    expectProblem(await call(scopePath(scope, '/timers/daily')), 404)
  })

  test('ticks', async () => {
    const scope = freshScope()
    await put(scope, 'soon', { every_s: 3600 })
    await hurry(stubOf(scope))
    const { body } = await call(scopePath(scope, '/log'))
    expect(body.items).toContainEqual(expect.objectContaining({ kind: 'event-accepted', event_type: 'timer.tick' }))
  })

  test.each([{ every_s: 0 }, { cron: 'never' }, { at: 'tomorrow' }, { at: '2020-01-01T00:00:00Z' }, {}, { every_s: 1, cron: '* * * * *' }])(
    'is not set by %j',
    async (schedule) => {
      expectProblem(await put(freshScope(), 't', schedule), 400, 'invalid-request')
    },
  )

  test.each(['x'.repeat(65), 'a%20b', 'a%2Fb'])('is not named %s', async (name) => {
    expectProblem(await put(freshScope(), name, { every_s: 1 }), 400, 'invalid-request')
  })

  test('is one of a hundred at most', async () => {
    const scope = freshScope()
    await Promise.all(Array.from({ length: 100 }, (_, index) => stubOf(scope).setTimer(`t${index}`, { every_s: 3600 }, 'test')))
    expectProblem(await put(scope, 'more', { every_s: 3600 }), 409, 'too-many-timers')
    expect(await put(scope, 't1', { every_s: 1800 })).toMatchObject({ status: 200 })
  })
})

describe('dead letters', () => {
  const listed = async (scope: string) => (await call(`/v1/dlq?scope=${encodeURIComponent(scope)}`)).body.items
  async function failing(count = 1) {
    const scope = freshScope()
    await call(scopePath(scope), { method: 'PATCH', json: { max_attempts: 1 } })
    behaviours.set(scope, async () => Promise.reject(new Error('no paper')))
    await settle(
      scope,
      Array.from({ length: count }, (_, index) => message({ id: `d${index}` })),
    )
    await until(async () => (await listed(scope)).length === count, 'the scope tells D1')
    behaviours.delete(scope)
    return { scope, letters: await listed(scope) }
  }
  const bury = (letter: object) =>
    env.DB.prepare(
      `INSERT INTO dead_letters SELECT value->>'id', 'queue', value->>'scope', value->>'event_id', value->>'type', 'unreachable', 6, value->>'payload', ?2
        FROM json_each(json_array(json(?1)))`,
    )
      .bind(JSON.stringify(letter), Date.now())
      .run()

  test('of a scope are listed, shown and retried', async () => {
    const { scope, letters } = await failing()
    const [letter] = letters
    expect(letter).toEqual({
      id: expect.any(String),
      origin: 'scope',
      scope,
      event_id: 'd0',
      type: 'ws.message',
      error: expect.stringContaining('no paper'),
      attempts: 1,
      event: expect.objectContaining({ id: 'd0', content: 'hello' }),
      dead_lettered_at: expect.stringMatching(time),
    })
    expect(await call(`/v1/dlq/${letter.id}`)).toMatchObject({ status: 200, body: letter })
    const retried = await call(`/v1/dlq/${letter.id}/retry`, { method: 'POST' })
    expect(retried).toMatchObject({ status: 200, body: { id: letter.id, scope, event_id: 'd0', status: 'retried' } })
    await until(async () => (await call(scopePath(scope, '/events/d0'))).body.status === 'completed', 'it completes')
    expectProblem(await call(`/v1/dlq/${letter.id}`), 404)
    expectProblem(await call(`/v1/dlq/${letter.id}/retry`, { method: 'POST' }), 404)
  })

  test('are discarded, and stay so', async () => {
    const { scope, letters } = await failing()
    expect(await call(`/v1/dlq/${letters[0].id}`, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' })
    expect(await call(scopePath(scope, '/events/d0'))).toMatchObject({ body: { status: 'dead_lettered', outcome: { discarded: true } } })
    await until(async () => (await call(scopePath(scope))).body.outbox.waiting === 0, 'the scope tells D1')
    expect(await listed(scope)).toEqual([])
    expectProblem(await call(`/v1/dlq/${letters[0].id}`, { method: 'DELETE' }), 404)
  })

  test('are retried by filter', async () => {
    const { scope } = await failing(3)
    expect(await call('/v1/dlq/retry', { json: { scope, type: 'timer.tick' } })).toMatchObject({ body: { retried: 0, failed: [] } })
    expect(await call('/v1/dlq/retry', { json: { scope, limit: 2 } })).toMatchObject({ status: 200, body: { retried: 2, failed: [] } })
    expect(await call('/v1/dlq/retry', { json: { scope } })).toMatchObject({ body: { retried: 1, failed: [] } })
    await until(async () => (await call(scopePath(scope))).body.counters.completed === 3, 'all complete')
    expectProblem(await call('/v1/dlq/retry', { json: { limit: 0 } }), 400)
    expectProblem(await call('/v1/dlq/retry', { method: 'POST' }), 415)
  })

  test('of the queue go to their scope', async () => {
    const scope = freshScope()
    const event = {
      id: 'q',
      scope,
      source: 's',
      timestamp: new Date().toISOString(),
      meta: { trace_id: '0'.repeat(31) + '1', correlation_id: null, causation_id: null },
    }
    await bury({ id: `letter-${scope}`, scope, event_id: 'q', type: 'ws.message', payload: JSON.stringify(message(event)) })
    expect(await call(`/v1/dlq/${encodeURIComponent(`letter-${scope}`)}/retry`, { method: 'POST' })).toMatchObject({ status: 200 })
    await until(async () => (await call(scopePath(scope, '/events/q'))).body.status === 'completed', 'it completes')
    expect(await listed(scope)).toEqual([])
  })

  test('that cannot be read are not retried, and shown only to who may see all', async () => {
    const id = crypto.randomUUID()
    await bury({ id, scope: null, event_id: null, type: null, payload: '{"what":1}' })
    const { body } = await call(`/v1/dlq/${id}`)
    expect(body).toMatchObject({ id, origin: 'queue', scope: null, event_id: null, payload: '{"what":1}' })
    expect(body).not.toHaveProperty('event')
    expectProblem(await call(`/v1/dlq/${id}/retry`, { method: 'POST' }), 409, 'not-retried')
    const key = await keyFor(['operator'], ['test/*'])
    expectProblem(await call(`/v1/dlq/${id}`, { key }), 404)
    expect((await call('/v1/dlq?limit=1000', { key })).text).not.toContain(id)
    const many = await call('/v1/dlq/retry', { json: {} })
    expect(many.body.failed).toContainEqual({ id, reason: expect.stringContaining('no event') })
    expect(await call(`/v1/dlq/${id}`, { method: 'DELETE' })).toMatchObject({ status: 204 })
  })

  test('are paged, also those of one moment', async () => {
    const { scope, letters } = await failing(5)
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { body } = await call(`/v1/dlq?scope=${encodeURIComponent(scope)}&limit=2${cursor && `&cursor=${cursor}`}`)
      seen.push(...body.items.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor
    }
    expect(seen).toEqual(letters.map(({ id }: { id: string }) => id))
    expectProblem(await call('/v1/dlq?cursor=x'), 400)
  })
})

describe('health', () => {
  test('is open, and says little', async () => {
    expect(await call('/health', { key: null })).toMatchObject({ status: 200, body: { status: 'ok' } })
    const ready = await call('/health/ready', { key: null })
    expect(ready).toMatchObject({ status: 200, body: { status: 'ready', database: { ok: true, error: null }, queue: { ok: true } } })
  })

  test.each([
    ['database', { DB: { prepare: () => ({ first: async () => Promise.reject(new Error('D1 is away')) }) } }, 'D1 is away'],
    ['queue', { EVENTS: { metrics: async () => Promise.reject(new Error('no queue')) } }, 'no queue'],
    ['queue', { EVENTS: { metrics: () => new Promise(() => {}) } }, 'within'],
    ['queue', { EVENTS: {} }, 'not a function'],
  ])('is not ready without its %s', async (part, bindings, reason) => {
    const answer = await callWith(bindings, '/health/ready', { key: null })
    expect(answer).toMatchObject({
      status: 503,
      body: { status: 'unavailable', [part]: { ok: false, error: expect.stringContaining(reason) } },
    })
  })

  test('is told in detail', async () => {
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
    })
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

  test('is a page that loads nothing', async () => {
    const { status, type, text, headers } = await call('/v1/docs', { key: null })
    expect({ status, type }).toEqual({ status: 200, type: 'text/html; charset=UTF-8' })
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(text) ?? []
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(style)))
    const hash = btoa(String.fromCodePoint(...digest))
    expect(headers.get('Content-Security-Policy')).toContain(`default-src 'none'; style-src 'sha256-${hash}';`)
    expect(text).not.toMatch(/<script|<link|<img|src=|@import|url\(/)
    const { body } = await call('/v1/openapi.json')
    for (const path of Object.keys(body.paths)) expect(text).toContain(`<code>${path}</code>`)
  })

  test.each(['/docs', '/openapi.json'])('is where one looks first: %s', async (path) => {
    const answer = await fetchRaw(path, { key: null })
    // Followed: the answer is the page's own.
    expect(answer.status).toBe(200)
  })
})

describe('everything else', () => {
  test('is a problem', async () => {
    expectProblem(await call('/nowhere', { key: null }), 404, 'not-found')
    expectProblem(await call('/v1/nowhere'), 404, 'not-found')
    expectProblem(await call('/v1/nowhere', { key: null }), 401)
    const answer = await call('/v1/keys', { method: 'PATCH', json: {} })
    expectProblem(answer, 405, 'method-not-allowed')
    expect(answer.headers.get('Allow')).toBe('GET, POST')
  })

  test('too many requests are told when to come back', async () => {
    const RATE_LIMIT = { limit: async () => ({ success: false }) }
    const answer = await callWith({ RATE_LIMIT }, '/v1/scopes')
    expectProblem(answer, 429, 'too-many-requests')
    expect(answer.headers.get('Retry-After')).toBe('10')
    expectProblem(await callWith({ RATE_LIMIT }, scopePath('a', '/ws?ticket=rft_'), { key: null }), 429)
  })
})

test('the client knows the routes and their answers', async () => {
  const scope = freshScope()
  const client = createClient('https://reflex.test', 'test-admin-key', {
    fetch: (input, init) =>
      fetchRaw(new URL(String(input)).pathname + new URL(String(input)).search, {
        method: init?.method ?? 'GET',
        ...(init?.body ? { body: init.body as string } : {}),
        headers: Object.fromEntries(new Headers(init?.headers)),
      }),
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
})
