import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { limits } from '../../../../src/base/limits.ts'
import { call, problem, fetchRaw, keyFor, message, scopePath } from '../../../support/http.ts'
import { freshScope, hurry, note, stubOf, until } from '../../../support/scopes.ts'
import { behaviours } from '../../../support/test-agents.ts'
import { propose, skill } from '../../../support/two-step-skill.ts'

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const direct = (scope: string, query = '') => scopePath(scope, `/events${query}`)
const settle = (scope: string, json: unknown) => call(direct(scope, '?wait=outcome'), { json })

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
    expect(await call(`/v1/scopes/${scope}`)).toMatchObject(problem(404))
    for (const rest of ['', '/events', '/events/some-id', '/timers/daily']) {
      const { body } = await call(`/v1/scopes/${scope}${rest}`)
      expect(body.detail).toContain(`A slash in the name of a scope is written %2F: ${scopePath(scope, rest)}.`)
    }
    expect((await call('/v1/nowhere')).body.detail).toContain('/v1/docs')
  })

  test('is listed, page by page', async () => {
    const scope = freshScope('list')
    await settle(scope, message())
    const key = await keyFor(['viewer'], ['list/*'])
    await until(async () => (await call('/v1/scopes', { key })).body.items.length > 0, 'the scope tells D1')
    const { body } = await call('/v1/scopes', { key })
    expect(body).toEqual({
      items: [
        {
          scope,
          agent: 'prompted',
          open: expect.any(Number),
          turn_since: null,
          parked: 0,
          accepted: expect.any(Number),
          fire_share: null,
          cost_usd: 0,
          unpriced_model_calls: 0,
          asks_model_at: null,
          updated_at: expect.stringMatching(time),
        },
      ],
      next_cursor: null,
    })
    const first = await call('/v1/scopes?limit=1')
    const rest = await call(`/v1/scopes?limit=1000&cursor=${encodeURIComponent(first.body.next_cursor ?? '')}`)
    for (const { scope: name } of rest.body.items) expect(name > first.body.items[0].scope).toBe(true)
  })

  test('is found in the list by its name, its agent, its turn in flight and its open events', async () => {
    const [busy, idle] = [freshScope('found/Busy'), freshScope('found/idle')]
    const key = await keyFor(['viewer'], ['found/*'])
    const found = async (query: string): Promise<string[]> =>
      (await call(`/v1/scopes?${query}`, { key })).body.items.map(({ scope }: { scope: string }) => scope)
    await call(scopePath(busy), { method: 'PATCH', json: { agent: 'test-agent' } })
    behaviours.set(busy, () => new Promise(() => {}))
    await settle(idle, message())
    await call(direct(busy), { json: message() })
    await until(async () => (await found('state=turn')).length > 0, 'D1 has the turn in flight')
    const { items } = (await call('/v1/scopes?state=turn', { key })).body
    expect(items).toMatchObject([{ scope: busy, open: 1, turn_since: expect.stringMatching(time) }])
    expect(await found('state=open')).toEqual([busy])
    expect(await found('state=parked')).toEqual([])
    await until(async () => (await found('')).length === 2, 'D1 has both')
    expect(await found('search=BUSY')).toEqual([busy])
    expect(await found('search=test-agent')).toEqual([busy])
    expect(await found('search=%25')).toEqual([])
    await call(scopePath(busy, '/cancel'), { method: 'POST' })
    await until(async () => (await found('state=turn')).length === 0, 'D1 has the end of the turn')
    expect(await call('/v1/scopes?state=other', { key })).toMatchObject(problem(400))
  })

  test.each([
    ['a long beginning', (scope: string) => `${scope.slice(0, -4)}*`],
    ['a long name', (scope: string) => scope],
  ])('is listed for a key whose pattern is %s', async (_, patternOf) => {
    const scope = freshScope(`list-${'x'.repeat(60)}`)
    await settle(scope, message())
    const key = await keyFor(['viewer'], [patternOf(scope)])
    await until(async () => (await call('/v1/scopes', { key })).body.items.length > 0, 'the scope tells D1')
    const listed = (await call('/v1/events', { key })).body.items
    expect(listed).toMatchObject([{ scope }])
    expect((await call('/v1/dlq', { key: await keyFor(['operator'], [patternOf(scope)]) })).status).toBe(200)
  })

  test('takes settings as a merge patch, and rejects anything else', async () => {
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
      expect(await patch(bad)).toMatchObject(problem(400, 'invalid-request'))
    }
    expect(await call(scopePath(scope), { method: 'PATCH', body: '{"max_attempts":' })).toMatchObject(problem(400, 'malformed-body'))
    const deep = `{"parameters":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
    expect(await call(scopePath(scope), { method: 'PATCH', body: deep })).toMatchObject(problem(400, 'invalid-request'))
    expect(await call(scopePath(scope), { method: 'PATCH', body: '{}', type: 'text/plain' })).toMatchObject(problem(415))
    expect(await call(scopePath(scope), { method: 'PATCH', json: { instructions: 'x'.repeat(1024 * 1024) } })).toMatchObject(problem(413))
    expect((await call(scopePath(scope))).body.settings.max_attempts).toBe(3)
  })

  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) })

  test.each<[string, string, RegExp]>([
    ['no object', '{"blackboard": "x"}', /^The body is not valid: blackboard: /],
    ['a part that there is not', '{"blackboard": {"other": {}}}', /blackboard: Unrecognized key: "other"/],
    ['a part that is no object', '{"blackboard": {"ctx": [1]}}', /blackboard\.ctx: /],
    ['a reserved name', '{"blackboard": {"ctx": {"__proto__": 1}}}', /blackboard\.ctx\.__proto__ is a reserved name/],
    ['a number that no double holds', '{"blackboard": {"env": {"x": 1e999}}}', /blackboard\.env\.x is a number beyond/],
    ['half of a surrogate pair', '{"blackboard": {"ctx": {"x": "\\ud800"}}}', /blackboard\.ctx\.x contains a lone surrogate/],
    ['nesting without an end', JSON.stringify({ blackboard: { ctx: nested(63) } }), /blackboard\.ctx\.a.* is nested deeper than 64 levels/],
    ['what the steps give', '{"blackboard": {"work": {"steps": {}}}}', /blackboard\.work\.steps: is reserved/],
    ['roles that are no list', '{"blackboard": {"policy": {"roles": "operator"}}}', /blackboard\.policy\.roles: must be a list of roles/],
    ['an invalid role', '{"blackboard": {"policy": {"roles": ["operator", 7]}}}', /blackboard\.policy\.roles\[1\]: /],
    ['a label of nothing but blanks', '{"goal_labels": ["deploy", "  "]}', /goal_labels\[1\]: /],
  ])('refuses a seed for its skills with %s, and says where', async (_, body, detail) => {
    const answer = await call(scopePath(freshScope()), { method: 'PATCH', body })
    expect(answer).toMatchObject(problem(400, 'invalid-request'))
    expect(answer.body.detail).toMatch(detail)
    expect(answer.body.errors).not.toEqual([])
  })

  test('refuses such a seed also where no body was parsed, so that none is ever kept', async () => {
    const stub = stubOf(freshScope())
    expect(await stub.configure({ blackboard: { ctx: { a: [Number.POSITIVE_INFINITY] } } }, 'ops')).toEqual({
      ok: false,
      reason: 'invalid',
      detail: 'blackboard.ctx.a[0] is a number beyond the range of a double',
    })
    expect((await stub.state()).settings.blackboard).toEqual({})
  })

  test('decides on a skill whatever seed it has taken', async () => {
    const scope = freshScope()
    const id = await skill({ preconditions: { tools_available: ['act'], invariants: ['ctx == ctx'] } })
    const seeds = [nested(61), Array(2000).fill(1), 'x'.repeat(30_000), -0, 1e300, null, { constructor: 1, '': [] }]
    for (const a of seeds) {
      expect(await call(scopePath(scope), { method: 'PATCH', json: { blackboard: { ctx: { a } } } })).toMatchObject({ status: 200 })
      expect(['ok', 'refused']).toContain((await propose(scope, id)).status)
    }
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
      waiting: null,
      attempts: 1,
      error: null,
      outcome: expect.objectContaining({ by: 'turn', result: null }),
      accepted_at: expect.stringMatching(time),
      ended_at: expect.stringMatching(time),
    })
    expect(await call(scopePath(scope, '/events/none'))).toMatchObject(problem(404, 'not-found'))
  })

  test('lists its events with their outcomes, newest first, page by page', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (context) => {
      if (context.events.some(({ id }) => id === 'bad')) throw new Error('it is bad')
      return { done: true }
    })
    await call(scopePath(scope), { method: 'PATCH', json: { max_attempts: 1 } })
    await settle(scope, message({ id: 'good' }))
    await settle(scope, message({ id: 'bad' }))
    const whole = (await call(direct(scope))).body
    expect(whole).toMatchObject({
      items: [
        { event: { id: 'bad' }, status: 'dead_lettered', outcome: { by: 'failure', reason: 'it is bad' }, waiting: null },
        { event: { id: 'good' }, status: 'completed', outcome: { by: 'turn', result: { done: true } } },
      ],
      next_cursor: null,
    })
    const first = (await call(direct(scope, '?limit=1'))).body
    expect(first.items).toEqual(whole.items.slice(0, 1))
    const second = (await call(direct(scope, `?limit=1&cursor=${first.next_cursor}`))).body
    expect(second).toEqual({ items: whole.items.slice(1), next_cursor: null })
    expect((await call(direct(scope, '?status=completed'))).body.items).toMatchObject([{ event: { id: 'good' } }])
    expect((await call(direct(scope, '?type=other'))).body).toEqual({ items: [], next_cursor: null })
    expect((await call(direct(freshScope()))).body).toEqual({ items: [], next_cursor: null })
  })

  test('says why an event in its list has no outcome yet', async () => {
    const scope = freshScope()
    behaviours.set(scope, () => new Promise(() => {}))
    await call(direct(scope), { json: message({ id: 'a' }) })
    await until(async () => (await call(scopePath(scope))).body.turn, 'the turn begins')
    expect((await call(direct(scope))).body.items).toMatchObject([{ status: 'processing', outcome: null, waiting: { reason: 'turn' } }])
  })

  test('shows what decides on an event, in order', async () => {
    const scope = freshScope()
    const decision_model = { name: 'attack', question: { type: 'noul', instructions: 'Is it one?' }, actions: {} }
    await call(scopePath(scope), { method: 'PATCH', json: { decision_model, reflexes: [{ id: 'absent', rate: 5 }] } })
    expect((await call(scopePath(scope, '/chain'))).body).toEqual({
      scope,
      agent: { name: 'test-agent', version: null },
      consumer: 'turn',
      filters: { count: expect.any(Number), types: expect.any(Array) },
      reflexes: [
        {
          id: 'absent',
          version: null,
          watching: null,
          by_proof: false,
          absent: 'no version of reflex absent is active or in shadow',
          cooldown_s: null,
          rate: 5,
        },
      ],
      decision_model: { name: 'attack', model: 'offline', types: null, threshold: null },
      turn: { model: 'offline', tools: expect.arrayContaining(['act']) },
    })
  })

  test('uses a model that the deployment can serve, and refuses any other', async () => {
    const scope = freshScope()
    const refused = await call(scopePath(scope), { method: 'PATCH', json: { model: 'openai-compatible/gpt-5-mini' } })
    expect(refused).toMatchObject(problem(400))
    expect(refused.body.detail).toContain('model: The model "openai-compatible/gpt-5-mini" can')
    expect((await call(scopePath(scope), { method: 'PATCH', json: { model: 'offline' } })).body.settings.model).toBe('offline')
    expect((await call(scopePath(scope), { method: 'PATCH', json: { model: null } })).body.settings.model).toBeUndefined()
  })

  describe('that declares event types', () => {
    const order = {
      type: 'object',
      properties: { order: { type: 'string' }, total: { type: 'number', minimum: 0 } },
      required: ['order', 'total'],
    }
    const declare = (scope: string, event_types: object) => call(scopePath(scope), { method: 'PATCH', json: { event_types } })

    test('accepts events that fit, by every way in', async () => {
      const scope = freshScope()
      expect((await declare(scope, { 'order.placed': order })).body.settings.event_types).toEqual({ 'order.placed': order })
      const fits = { type: 'order.placed', order: 'a', total: 3, note: 'kept' }
      const settled = await settle(scope, [fits, message()])
      expect(settled.body.events.map(({ status }: { status: string }) => status)).toEqual(['completed', 'completed'])
      const { body } = await call(scopePath(scope, `/events/${settled.body.events[0].id}`))
      expect(body.event).toMatchObject({ type: 'order.placed', total: 3, note: 'kept' })
      expect((await call('/v1/events', { json: { ...fits, scope } })).status).toBe(202)
      const cloud = { specversion: '1.0', id: 'c', source: '/shop', type: 'order.placed', subject: scope, data: { order: 'b', total: 1 } }
      expect((await call('/v1/events', { body: JSON.stringify(cloud), type: 'application/cloudevents+json' })).status).toBe(202)
    })

    test('refuses events that do not fit, with the path of each field', async () => {
      const scope = freshScope()
      await declare(scope, { 'order.placed': order })
      const wrong = [{ type: 'order.placed', total: -1 }, message()]
      for (const answer of [await call(direct(scope), { json: wrong }), await call('/v1/events', { json: { ...wrong[0], scope } })]) {
        expect(answer).toMatchObject(problem(400))
        expect(answer.body.errors.map(({ path }: { path: string }) => path).toSorted()).toEqual(['order', 'total'])
      }
      const unknown = await call(direct(scope), { json: { type: 'order.lost' } })
      expect(unknown).toMatchObject(problem(400))
      expect(unknown.body.detail).toContain('order.placed')
      const elsewhere = await call(direct(freshScope()), { json: { type: 'order.placed', order: 'a', total: 1 } })
      expect(elsewhere).toMatchObject(problem(400))
      expect((await call(scopePath(scope))).body.counters.accepted).toBe(0)
    })

    test.each(['itself', 'another scope'])(
      'refuses what a turn publishes to %s and does not fit, with all that it publishes',
      async (to) => {
        const scope = freshScope()
        const other = to === 'itself' ? scope : freshScope()
        await declare(other, { 'order.placed': order })
        const placed = (fields: object) => ({ ...note(other, 'x'), type: 'order.placed', ...fields })
        const fits = placed({ order: 'a', total: 1 })
        const refused: unknown[] = []
        behaviours.set(scope, async (context, deps) => {
          if (context.events.some(({ type }) => type !== 'ws.message')) return
          await deps.store.publish(fits, placed({ order: 'b', total: -1 })).catch((error: Error) => refused.push(error.message))
          if (refused.length > 0) await deps.store.publish({ ...fits, id: 'again' })
        })
        await settle(scope, message())
        expect(refused).toEqual([expect.stringContaining(`is not a order.placed as ${other} declares it: total`)])
        await until(async () => (await stubOf(other).event('again')) !== null, 'what fits is published')
        expect(await stubOf(other).event(fits.id)).toBeNull()
      },
    )

    test.each([
      [{ 'ws.message': { type: 'object' } }, 'a type of the deployment'],
      [{ a: { type: 'string' } }, 'must describe an object'],
      [{ a: { type: 'object', properties: { id: {} } } }, 'every event has this field'],
      [{ a: { type: 'object', properties: { b: { pattern: '(a+)+$' } } } }, 'must not use the keyword pattern'],
      [{ a: { type: 'object', properties: { b: { $ref: '#' } } } }, 'must not use the keyword $ref'],
      [{ 'a b': { type: 'object' } }, 'the first is a letter or digit'],
    ])('refuses a type that cannot be checked: %j', async (types, why) => {
      const answer = await declare(freshScope(), types)
      expect(answer).toMatchObject(problem(400))
      expect(JSON.stringify(answer.body)).toContain(why)
    })

    test('may name a field after a refused keyword', async () => {
      const answer = await declare(freshScope(), { a: { type: 'object', properties: { pattern: { type: 'string' } } } })
      expect(answer.status).toBe(200)
    })
  })

  test('has settings whose JSON Schema describes each of them', async () => {
    const { body } = await call('/v1/settings/schema')
    const { settings } = (await call(scopePath(freshScope()))).body
    expect(Object.keys(body.properties)).toEqual(expect.arrayContaining(Object.keys(settings)))
    const described = Object.values<{ description?: string }>(body.properties)
    expect(described.filter(({ description = '' }) => description === '')).toEqual([])
    expect(body.properties.context_limit).toMatchObject({ type: 'integer', minimum: 1, maximum: 10_000, default: 1000 })
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
    expect(await call(scopePath(scope, '/log?limit=1001'))).toMatchObject(problem(400))
    expect(await call(scopePath(scope, '/log?after=-1'))).toMatchObject(problem(400))
  })

  test('has a log that is filtered by kind and by trace', async () => {
    const scope = freshScope()
    await settle(scope, [message(), message()])
    const { items } = (await call(scopePath(scope, '/log'))).body
    const accepted = await call(scopePath(scope, '/log?kind=event-accepted'))
    expect(accepted.body.items).toEqual(items.filter(({ kind }: { kind: string }) => kind === 'event-accepted'))
    const several = await call(scopePath(scope, '/log?kind=event-accepted,event-ended'))
    expect(several.body.items).toEqual(items.filter(({ kind }: { kind: string }) => kind === 'event-accepted' || kind === 'event-ended'))
    const [{ trace_id }] = items
    const traced = await call(scopePath(scope, `/log?trace_id=${trace_id}&kind=event-ended`))
    expect(traced.body.items).toHaveLength(1)
    expect(traced.body.items[0]).toMatchObject({ trace_id, kind: 'event-ended' })
    expect(await call(scopePath(scope, '/log?trace_id=none'))).toMatchObject(problem(400))
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
    expect(await call(scopePath(scope, '/cancel'), { json: { why: 'typo' } })).toMatchObject(problem(400))
    expect(await call(scopePath(scope, '/cancel'), { body: 'because', type: 'text/plain' })).toMatchObject(problem(415))
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
      seq?: number
      id?: string
      status?: string
      entry?: { kind: string; seq: number; event_type?: string; source?: string }
      errors?: unknown
    }[] = []
    socket.addEventListener('message', ({ data }) => {
      frames.push(JSON.parse(String(data)))
    })
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
    expect(frames.slice(0, 2)).toMatchObject([{ type: 'open', seq: 1 }, { entry: { seq: 2 } }])
    socket.send(JSON.stringify({ content: 'hello' }))
    expect(await find('error')).toMatchObject({ errors: [{ message: expect.stringContaining('publisher') }] })
    socket.close()
  })

  test('identity headers of a caller are ignored', async () => {
    const scope = freshScope()
    const key = await keyFor(['viewer'], ['*'], 'ünïcode ✓')
    const forged = JSON.stringify({ connection_id: 'root', source: 'root', may_send: true, after: null })
    const { socket, find } = await connect(scope, { key, headers: { 'x-reflex-connect': forged } })
    socket.send(JSON.stringify({ content: 'hello' }))
    expect(await find('error')).toMatchObject({ errors: [{ message: expect.stringContaining('publisher') }] })
    socket.close()
  })

  test('a request that is not an upgrade gets 426', async () => {
    const answer = await call(scopePath(freshScope(), '/ws'))
    expect(answer).toMatchObject(problem(426, 'upgrade-required'))
    expect(answer.headers.get('Upgrade')).toBe('websocket')
  })

  test.each(['after=-1', 'after=x', 'connection_id='])('a socket with %s is refused', async (query) => {
    expect(await call(scopePath(freshScope(), `/ws?${query}`), { headers: { Upgrade: 'websocket' } })).toMatchObject(problem(400))
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
    expect((await read('/stream?after=0')).slice(0, 2)).toEqual([0, 1])
    expect((await read('/stream?after=1', { 'Last-Event-ID': '2' })).slice(0, 2)).toEqual([2, 3])
  })

  test('sockets that are more than a scope may have are refused, and told so', async () => {
    const path = scopePath(freshScope(), '/ws')
    const open = { headers: { Upgrade: 'websocket' } }
    const { sockets_per_scope } = limits
    Object.assign(limits, { sockets_per_scope: 1 })
    try {
      const { webSocket: first } = await fetchRaw(path, open)
      first?.accept()
      expect(await call(path, open)).toMatchObject(problem(503, 'unavailable'))
      first?.close()
    } finally {
      Object.assign(limits, { sockets_per_scope })
    }
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
    expect(await post(scope, '/nack', { ack_token: b })).toMatchObject(problem(409, 'stale-token'))
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
    expect(await post(freshScope(), '/claim', {})).toMatchObject(problem(409, 'not-pull'))
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
    expect(await post(await pulled(), rest, json)).toMatchObject(problem(400, 'invalid-request'))
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
    expect(await call(scopePath(scope, '/timers/daily'), { method: 'DELETE' })).toMatchObject(problem(404))
    expect(await call(scopePath(scope, '/timers/daily'))).toMatchObject(problem(404))
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
      expect(await put(freshScope(), 't', schedule)).toMatchObject(problem(400, 'invalid-request'))
    },
  )

  test.each(['x'.repeat(65), 'a%20b', 'a%2Fb'])('is not named %s', async (name) => {
    expect(await put(freshScope(), name, { every_s: 1 })).toMatchObject(problem(400, 'invalid-request'))
  })

  test('is one of a hundred at most', async () => {
    const scope = freshScope()
    await Promise.all(Array.from({ length: 100 }, (_, index) => stubOf(scope).setTimer(`t${index}`, { every_s: 3600 }, 'test')))
    expect(await put(scope, 'more', { every_s: 3600 })).toMatchObject(problem(409, 'too-many-timers'))
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
      `INSERT INTO dead_letters (id, origin, scope, event_id, type, error, attempts, payload, dead_lettered_at)
        SELECT value->>'id', 'queue', value->>'scope', value->>'event_id', value->>'type', 'unreachable', 6, value->>'payload', ?2
        FROM json_each(json_array(json(?1)))`,
    )
      .bind(JSON.stringify(letter), Date.now())
      .run()

  test('tell the place of the error in the code to keys that may read the log, and to no other', async () => {
    const scope = freshScope()
    await call(scopePath(scope), { method: 'PATCH', json: { max_attempts: 1 } })
    behaviours.set(scope, async () => Promise.reject(new Error('no paper')))
    const outcomeFor = async (roles: ('publisher' | 'viewer')[]) => {
      const key = await keyFor(roles, [scope])
      return (await call(scopePath(scope, '/events?wait=outcome'), { json: message(), key })).body.events[0].outcome
    }
    expect(await outcomeFor(['publisher', 'viewer'])).toMatchObject({ by: 'failure', stack: expect.stringMatching(/\n +at /) })
    const told = await outcomeFor(['publisher'])
    expect(told).toMatchObject({ by: 'failure' })
    expect(told).not.toHaveProperty('stack')
    behaviours.delete(scope)
  })

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
      stack: expect.stringMatching(/^Error: no paper\n +at /),
      attempts: 1,
      event: expect.objectContaining({ id: 'd0', content: 'hello' }),
      dead_lettered_at: expect.stringMatching(time),
    })
    expect(await call(`/v1/dlq/${letter.id}`)).toMatchObject({ status: 200, body: letter })
    const retried = await call(`/v1/dlq/${letter.id}/retry`, { method: 'POST' })
    expect(retried).toMatchObject({ status: 200, body: { id: letter.id, scope, event_id: 'd0', status: 'retried' } })
    await until(async () => (await call(scopePath(scope, '/events/d0'))).body.status === 'completed', 'it completes')
    expect(await call(`/v1/dlq/${letter.id}`)).toMatchObject(problem(404))
    expect(await call(`/v1/dlq/${letter.id}/retry`, { method: 'POST' })).toMatchObject(problem(404))
  })

  test('are discarded, and stay so', async () => {
    const { scope, letters } = await failing()
    expect(await call(`/v1/dlq/${letters[0].id}`, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' })
    expect(await call(scopePath(scope, '/events/d0'))).toMatchObject({ body: { status: 'dead_lettered', outcome: { discarded: true } } })
    await until(async () => (await call(scopePath(scope))).body.outbox.waiting === 0, 'the scope tells D1')
    expect(await listed(scope)).toEqual([])
    expect(await call(`/v1/dlq/${letters[0].id}`, { method: 'DELETE' })).toMatchObject(problem(404))
  })

  test('are retried by filter', async () => {
    const { scope } = await failing(3)
    expect(await call('/v1/dlq/retry', { json: { scope, type: 'timer.tick' } })).toMatchObject({ body: { retried: 0, failed: [] } })
    expect(await call('/v1/dlq/retry', { json: { scope, limit: 2 } })).toMatchObject({ status: 200, body: { retried: 2, failed: [] } })
    expect(await call('/v1/dlq/retry', { json: { scope } })).toMatchObject({ body: { retried: 1, failed: [] } })
    await until(async () => (await call(scopePath(scope))).body.counters.completed === 3, 'all complete')
    expect(await call('/v1/dlq/retry', { json: { limit: 0 } })).toMatchObject(problem(400))
    expect(await call('/v1/dlq/retry', { method: 'POST' })).toMatchObject(problem(415))
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
    expect(await call(`/v1/dlq/${id}/retry`, { method: 'POST' })).toMatchObject(problem(409, 'not-retried'))
    const key = await keyFor(['operator'], ['test/*'])
    expect(await call(`/v1/dlq/${id}`, { key })).toMatchObject(problem(404))
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
    expect(await call('/v1/dlq?cursor=x')).toMatchObject(problem(400))
  })
})
