import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { builtInEvents, derive, eventType, eventUnion, newSpanId, newTraceId, withDefaults, type EventOf } from '../../../src/core/event.ts'
import { traceId } from '../../../src/contract/operations/shared.ts'
import { buildEvent } from '../../support/build-event.ts'

const NOW = Date.parse('2026-11-21T05:00:00.000Z')
const schema = eventUnion(builtInEvents)
const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const own = {
  'ws.message': { connection_id: 'alice', content: 'hello' },
  'http.request': { method: 'POST', path: '/orders', body: { total: 3 } },
  'file.change': { path: 'notes.md', change_type: 'created' },
  'timer.tick': { timer_name: 'hourly' },
} as const

const build = (type: keyof typeof own) => withDefaults({ type, ...own[type] }, { now: NOW, source: 'test' })

describe('the union of event types', () => {
  test.each(['ws.message', 'http.request', 'file.change', 'timer.tick'] as const)('accepts a %s and keeps it as it came', (type) => {
    const event = build(type)
    expect(schema.parse(event)).toEqual(event)
  })

  const broken: [string, Record<string, unknown>, string][] = [
    ['an empty id', { id: '' }, 'id'],
    ['an id of 129 characters', { id: 'x'.repeat(129) }, 'id'],
    ['a numeric id', { id: 7 }, 'id'],
    ['an id that addresses drop', { id: '..' }, 'id'],
    ['an id that is another address', { id: 'replay' }, 'id'],
    ['a scope with a space', { scope: 'my scope' }, 'scope'],
    ['an empty scope', { scope: '' }, 'scope'],
    ['a scope of 129 characters', { scope: 's'.repeat(129) }, 'scope'],
    ['an empty source', { source: '' }, 'source'],
    ['a timestamp that is no time', { timestamp: 'yesterday' }, 'timestamp'],
    ['a timestamp without its zone', { timestamp: '2026-11-21T05:00:00' }, 'timestamp'],
    ['an unknown type', { type: 'ws.unknown' }, 'type'],
    ['no type', { type: undefined }, 'type'],
    ['no meta', { meta: undefined }, 'meta'],
    ['a trace id in capitals', { meta: { trace_id: 'A'.repeat(32), correlation_id: null, causation_id: null } }, 'meta.trace_id'],
    ['a trace id of 31 digits', { meta: { trace_id: 'a'.repeat(31), correlation_id: null, causation_id: null } }, 'meta.trace_id'],
    ['a numeric correlation', { meta: { trace_id: 'a'.repeat(32), correlation_id: 1, causation_id: null } }, 'meta.correlation_id'],
    [
      'an endless causation',
      { meta: { trace_id: 'a'.repeat(32), correlation_id: null, causation_id: 'x'.repeat(129) } },
      'meta.causation_id',
    ],
    ['an empty connection', { connection_id: '' }, 'connection_id'],
    ['no content', { content: undefined }, 'content'],
  ]
  test.each(broken)('refuses %s and names the field', (_, override, path) => {
    const { error } = schema.safeParse({ ...buildEvent(), ...override })
    expect(error?.issues.map((issue) => issue.path.join('.'))).toEqual([path])
  })

  const brokenOwn: [keyof typeof own, string, unknown][] = [
    ['http.request', 'method', ''],
    ['http.request', 'path', undefined],
    ['http.request', 'body', () => 'no JSON'],
    ['file.change', 'path', ''],
    ['file.change', 'change_type', 'renamed'],
    ['timer.tick', 'timer_name', ''],
  ]
  test.each(brokenOwn)('refuses a %s with a bad %s', (type, field, value) => {
    const { error } = schema.safeParse({ ...build(type), [field]: value })
    expect(error?.issues[0]?.path[0]).toBe(field)
  })

  test.each(['ws.message', 'timer.tick'] as const)('keeps a field that a %s does not know', (type) => {
    expect(schema.parse({ ...build(type), locale: 'de' })).toMatchObject({ locale: 'de' })
  })

  test('takes a type of the user’s own, typed by its fields', () => {
    const slack = eventType('slack.message', { channel: z.string() })
    const union = eventUnion([...builtInEvents, slack])
    expect(union.parse({ ...buildEvent(), type: 'slack.message', channel: 'ops' })).toMatchObject({ channel: 'ops' })
    expect(union.safeParse({ ...buildEvent(), type: 'slack.message' }).success).toBe(false)
    expectTypeOf<Extract<EventOf<typeof union>, { type: 'slack.message' }>['channel']>().toEqualTypeOf<string>()
  })
})

describe('withDefaults', () => {
  const fill = (input: Record<string, unknown>) => withDefaults(input, { now: NOW, source: 'key:test' })

  test('makes a valid event out of a type and its own fields', () => {
    const event = schema.parse(fill({ type: 'timer.tick', timer_name: 'hourly' }))
    expect(event).toMatchObject({ scope: 'default', source: 'key:test', timestamp: '2026-11-21T05:00:00.000Z', timer_name: 'hourly' })
    expect(event.meta).toMatchObject({ correlation_id: null, causation_id: null })
    expect(event.id).toMatch(uuid7)
  })

  test('leaves what was sent', () => {
    const event = buildEvent({ scope: 'ops' })
    expect(fill({ ...event })).toEqual(event)
  })

  test('takes null for left out', () => {
    const event = fill({ ...own['timer.tick'], type: 'timer.tick', id: null, scope: null, source: null, timestamp: null, meta: null })
    expect(schema.safeParse(event).success).toBe(true)
  })

  test('gives each event a trace of its own, unless one is given', () => {
    const traceOf = (event: Record<string, unknown>) => z.object({ meta: z.object({ trace_id: z.string() }) }).parse(event).meta.trace_id
    expect(traceOf(fill({}))).not.toBe(traceOf(fill({})))
    const trace = { trace_id: newTraceId(), parent_id: '00f067aa0ba902b7' }
    expect(withDefaults({}, { now: NOW, source: 'test', trace })).toMatchObject({ meta: trace })
    expect(withDefaults({ meta: { trace_id: 'mine' } }, { now: NOW, source: 'test', trace })['meta']).toEqual({
      trace_id: 'mine',
      correlation_id: null,
      causation_id: null,
    })
  })

  test.each(['F81D4FAE-7DEC-41D0-A765-00A0C91E6BF6', '01a2175b-4d38-7157-a88f-8e954a11a560'])(
    'keeps the trace id %s as its 32 hex digits',
    (trace_id) => {
      expect(traceId.parse(trace_id)).toBe(trace_id.replaceAll('-', '').toLowerCase())
      const event = fill({ meta: { trace_id } })
      expect(event).toMatchObject({ meta: { trace_id: trace_id.replaceAll('-', '').toLowerCase() } })
    },
  )

  test.each(['0'.repeat(32), '00000000-0000-0000-0000-000000000000', '01a2175b-4d38-f157-a88f-8e954a11a560', 'A'.repeat(32)])(
    'refuses the trace id %s, also in an address',
    (trace_id) => {
      expect(traceId.safeParse(trace_id).success).toBe(false)
      const { error } = eventUnion(builtInEvents).safeParse(fill({ ...buildEvent(), meta: { trace_id } }))
      expect(error?.issues.map((issue) => issue.path.join('.'))).toEqual(['meta.trace_id'])
    },
  )

  test('takes the default scope of its caller', () => {
    expect(withDefaults({}, { now: NOW, source: 'test', scope: 'ops' })).toMatchObject({ scope: 'ops' })
    expect(withDefaults({ scope: 'mine' }, { now: NOW, source: 'test', scope: 'ops' })).toMatchObject({ scope: 'mine' })
  })

  test.each([
    ['2026-11-21T07:00:00+02:00', '2026-11-21T05:00:00.000Z'],
    ['2026-11-21T05:00:00Z', '2026-11-21T05:00:00.000Z'],
    ['2026-11-21T05:00:00.123456Z', '2026-11-21T05:00:00.123Z'],
    ['2026-11-21T05:00:00', '2026-11-21T05:00:00.000Z'],
    ['2026-11-21T05:00:00.5', '2026-11-21T05:00:00.500Z'],
    ['2026-11-21T05:00:00-05:30', '2026-11-21T10:30:00.000Z'],
  ])('keeps the time %s in UTC with milliseconds', (timestamp, kept) => {
    expect(fill({ timestamp })).toMatchObject({ timestamp: kept })
  })

  test.each(['yesterday', '2026-11-21', '2026-02-30T00:00:00Z', 1_795_237_200_000])(
    'leaves %s, which is no point in time, for the schema to refuse',
    (timestamp) => {
      const event = fill({ ...own['timer.tick'], type: 'timer.tick', timestamp })
      expect(event).toMatchObject({ timestamp })
      expect(schema.safeParse(event).success).toBe(false)
    },
  )

  test.each([['text'], [[1]], [7]])('leaves a meta of %j for the schema to refuse', (meta) => {
    expect(fill({ meta })).toMatchObject({ meta })
  })
})

describe('a derived event', () => {
  test('keeps scope, source and trace, and names its cause', () => {
    const cause = buildEvent({ scope: 'ops' })
    const child = derive(cause, { type: 'timer.tick', timer_name: 'later' }, NOW + 1000)
    expect(schema.parse(child)).toEqual(child)
    expect(child).toMatchObject({ scope: 'ops', source: cause.source, timestamp: '2026-11-21T05:00:01.000Z', timer_name: 'later' })
    expect(child.id).not.toBe(cause.id)
    expect(child.meta).toEqual({ trace_id: cause.meta.trace_id, correlation_id: cause.id, causation_id: cause.id })
  })

  test('has the sender of its cause, if that has one', () => {
    const cause = buildEvent()
    const sent = { ...cause, meta: { ...cause.meta, sender: 'key:ann' } }
    expect(derive(sent, { type: 'a' }, NOW).meta).toEqual({
      trace_id: cause.meta.trace_id,
      correlation_id: cause.id,
      causation_id: cause.id,
      sender: 'key:ann',
    })
    expect(Object.keys(derive(cause, { type: 'a' }, NOW).meta)).toEqual(['trace_id', 'correlation_id', 'causation_id'])
  })

  test('correlates with the first of its chain', () => {
    const first = buildEvent()
    const second = derive(first, { type: 'a' }, NOW)
    const third = derive(second, { type: 'b' }, NOW)
    expect(third.meta).toMatchObject({ correlation_id: first.id, causation_id: second.id })
  })

  test('may set its own id and scope, but not its trace', () => {
    const cause = buildEvent()
    const child = derive(cause, buildEvent({ id: 'mine', scope: 'other' }), NOW)
    expect(child).toMatchObject({ id: 'mine', scope: 'other', meta: { causation_id: cause.id } })
  })
})

test('trace ids have 32 hex digits, span ids 16', () => {
  expect(newTraceId()).toMatch(/^[0-9a-f]{32}$/)
  expect(newSpanId()).toMatch(/^[0-9a-f]{16}$/)
})

test('a `meta` that is null is replaced, and one that is no object is left to the schema', () => {
  const metaOf = (meta: unknown) => withDefaults({ type: 'a', meta }, { now: NOW, source: 's' })['meta']
  expect(metaOf(null)).toMatchObject({ correlation_id: null, causation_id: null, trace_id: expect.any(String) })
  expect([metaOf('text'), metaOf([1])]).toEqual(['text', [1]])
})
