import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hidesNothing } from '../../../../src/base/secrets.ts'
import { builtInEvents, eventType, eventUnion } from '../../../../src/core/event.ts'
import { type EventRules, readEvents } from '../../../../src/http/body/body.ts'
import { Problem } from '../../../../src/contract/problem.ts'
import { assertProperty } from '../../../support/property.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const rules: EventRules = {
  union: eventUnion(builtInEvents),
  types: builtInEvents.map((schema) => schema.shape.type.value),
  defaults: { now: Date.parse('2026-11-21T05:00:00.000Z'), source: 'alice' },
  secrets: hidesNothing,
}
const json = 'application/json'
const ndjson = 'application/x-ndjson'
const cloud = 'application/cloudevents+json'
const cloudBatch = 'application/cloudevents-batch+json'
const message = (content = 'hello') => ({ type: 'ws.message', connection_id: 'c1', content })
const cloudMessage = (id = 'c-1') => ({
  specversion: '1.0',
  id,
  source: '/s',
  type: 'ws.message',
  data: { connection_id: 'c1', content: 'hello' },
})

type Body = string | Uint8Array | ReadableStream
function post(body: Body | null, type: string | null = json, headers: Record<string, string> = {}, own: Partial<EventRules> = {}) {
  const init = { method: 'POST', body, headers: { ...headers, ...(type === null ? {} : { 'Content-Type': type }) }, duplex: 'half' }
  const request = new Request('https://reflex.test/v1/events', init)
  // A string body brings its own Content-Type.
  if (type === null) request.headers.delete('Content-Type')
  return readEvents(request, { ...rules, ...own })
}
async function refused(...input: Parameters<typeof post>): Promise<Problem> {
  const error: unknown = await post(...input).then(
    () => new Error('it was accepted'),
    (thrown: unknown) => thrown,
  )
  if (error instanceof Problem) return error
  throw error
}

describe('readEvents takes', () => {
  test.each<[string, string, string, number]>([
    ['one event', JSON.stringify(message()), json, 1],
    ['one event, with a charset', JSON.stringify(message()), 'application/json; charset=utf-8', 1],
    ['one event, in other letters', JSON.stringify(message()), 'Application/JSON;Charset="UTF-8"', 1],
    ['a byte order mark', `\ufeff${JSON.stringify(message())}`, json, 1],
    ['an array', JSON.stringify([message(), message()]), json, 2],
    ['1,000 events', JSON.stringify(Array.from({ length: 1000 }, () => message())), json, 1000],
    ['lines', `${JSON.stringify(message())}\n${JSON.stringify(message())}\n`, ndjson, 2],
    ['lines with blank ones and CRLF', `\r\n${JSON.stringify(message())}\r\n\r\n  \n${JSON.stringify(message())}`, ndjson, 2],
    ['a CloudEvent', JSON.stringify(cloudMessage()), cloud, 1],
    ['a batch of CloudEvents', JSON.stringify([cloudMessage('a'), cloudMessage('b')]), cloudBatch, 2],
  ])('%s', async (_name, body, type, count) => {
    const events = await post(body, type)
    expect(events).toHaveLength(count)
    for (const event of events) expect(event).toMatchObject({ type: 'ws.message', content: 'hello' })
    expect(new Set(events.map(({ id }) => id)).size).toBe(count)
  })

  const binary = { 'ce-specversion': '1.0', 'ce-id': 'b-1', 'ce-source': '/caf%C3%A9', 'ce-type': 'ws.message', 'ce-subject': '"a/b"' }
  const data = JSON.stringify({ connection_id: 'c1', content: 'hello' })

  test.each(['application/json', 'application/json; charset=utf-8', 'application/vnd.chat+json'])(
    'a CloudEvent in binary mode, with its data as %s',
    async (type) => {
      const headers = { ...binary, 'ce-time': '2026-11-21T07:00:00+02:00', 'ce-traceparent': `00-${trace}-00f067aa0ba902b7-01` }
      const [event] = await post(data, type, headers)
      expect(event).toMatchObject({
        type: 'ws.message',
        content: 'hello',
        source: '/café',
        scope: 'a/b',
        meta: { sent_id: 'b-1', trace_id: trace },
      })
      expect(event?.timestamp).toBe('2026-11-21T05:00:00.000Z')
      const { time: _, ...structured } = { ...cloudMessage('b-1'), source: '/café', subject: 'a/b', time: null }
      expect((await post(JSON.stringify(structured), cloud))[0]?.id).toBe(event?.id)
    },
  )

  test('a CloudEvent in binary mode without a body has no data', async () => {
    const typed = { ...rules, union: eventUnion([eventType('bell.rang', {})]), types: ['bell.rang'] }
    expect(await post(null, null, { ...binary, 'ce-type': 'bell.rang' }, typed)).toMatchObject([{ type: 'bell.rang', source: '/café' }])
  })

  test.each<[string, string, string, Record<string, string>, RegExp]>([
    ['data that is not JSON', data, 'text/plain', {}, /JSON object/],
    ['lines', data, ndjson, {}, /JSON object/],
    ['data that is a list', '[1]', json, {}, /^data: must be a JSON object/],
    ['no id', data, json, { 'ce-id': '' }, /^id: is required/],
    ['another version', data, json, { 'ce-specversion': '0.3' }, /^specversion/],
    ['a header that is half encoded', data, json, { 'ce-source': '/%C3' }, /ce-source is not percent-encoded/],
  ])('no CloudEvent in binary mode with %s', async (_name, body, type, headers, detail) => {
    expect((await refused(body, type, { ...binary, ...headers })).detail).toMatch(detail)
  })

  test('a body in many pieces, cut inside a character', async () => {
    const bytes = new TextEncoder().encode(JSON.stringify(message('é€😀')))
    const body = new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
    expect(await post(body)).toMatchObject([{ content: 'é€😀' }])
  })

  test('the trace of a traceparent header, where the event names none', async () => {
    const header = { traceparent: `00-${trace}-00f067aa0ba902b7-01` }
    const own = 'f'.repeat(32)
    const events = await post(JSON.stringify([message(), { ...message(), meta: { trace_id: own } }]), json, header)
    expect(events.map(({ meta }) => meta.trace_id)).toEqual([trace, own])
    expect(events.map(({ meta }) => meta.parent_id)).toEqual(['00f067aa0ba902b7', undefined])
  })

  test('a fresh trace for each event else, also where the header is invalid', async () => {
    const events = await post(JSON.stringify([message(), message()]), json, { traceparent: 'nonsense' })
    expect(new Set(events.map(({ meta }) => meta.trace_id)).size).toBe(2)
  })

  test('the scope of the path', async () => {
    expect(await post(JSON.stringify(message()), json, {}, { scope: 'a/b' })).toMatchObject([{ scope: 'a/b' }])
  })
})

describe('readEvents refuses', () => {
  test.each<[string, string | null]>([
    ['none', null],
    ['text', 'text/plain'],
    ['a look-alike', 'application/jsonx'],
    ['another charset', 'application/json; charset=utf-16'],
    ['an empty one', ' '],
  ])('a Content-Type that is %s', async (_name, type) => {
    const problem = await refused(JSON.stringify(message()), type)
    expect(problem).toMatchObject({ status: 415, type: 'urn:reflex:problem:unsupported-media-type' })
    for (const accepted of [json, ndjson, cloud, cloudBatch]) expect(problem.detail).toContain(accepted)
  })

  test.each<[string, Body | null, string, string, RegExp]>([
    ['no body', null, json, 'malformed-body', /empty/],
    ['a blank body', ' \n', json, 'malformed-body', /empty/],
    ['malformed JSON', '{"type":}', json, 'malformed-body', /position 8/],
    ['an empty array', '[]', json, 'wrong-event-count', /carries 0/],
    ['1,001 events', JSON.stringify(Array.from({ length: 1001 }, () => 1)), json, 'wrong-event-count', /carries 1001/],
    ['no lines', '\n\n', ndjson, 'wrong-event-count', /carries 0/],
    ['1,001 lines', '1\n'.repeat(1001), ndjson, 'wrong-event-count', /carries 1001/],
    ['an array as one CloudEvent', JSON.stringify([cloudMessage()]), cloud, 'invalid-event', /JSON object/],
    ['a CloudEvent as a batch', JSON.stringify(cloudMessage()), cloudBatch, 'malformed-body', /JSON array/],
    ['an empty batch', '[]', cloudBatch, 'wrong-event-count', /carries 0/],
    ['a scalar', '7', json, 'invalid-event', /JSON object/],
    ['an unknown type', '{"type":"nope"}', json, 'unknown-type', /"nope"; known: ws\.message, http\.request, file\.change, timer\.tick/],
    ['invalid UTF-8', Uint8Array.of(0x22, 0xff, 0x22), json, 'invalid-utf8', /UTF-8/],
    ['UTF-8 cut short', Uint8Array.of(0x22, 0xe2, 0x82), json, 'invalid-utf8', /UTF-8/],
    ['very deep nesting', `${'['.repeat(500_000)}${']'.repeat(500_000)}`, json, 'invalid-event', /JSON object/],
    ['very deep nesting inside', `{"type":"ws.message","a":${'['.repeat(400_000)}${']'.repeat(400_000)}}`, json, 'invalid-event', /deeper/],
    ['__proto__', '{"type":"ws.message","__proto__":{"content":"x"}}', json, 'invalid-event', /reserved name/],
  ])('%s', async (_name, body, type, name, detail) => {
    expect(await refused(body, type)).toMatchObject({
      status: 400,
      type: `urn:reflex:problem:${name}`,
      detail: expect.stringMatching(detail),
    })
  })

  test('a body that says it is over 1 MiB, unread', async () => {
    const body = new ReadableStream(
      {
        pull() {
          throw new Error('it was read')
        },
      },
      { highWaterMark: 0 },
    )
    expect(await refused(body, json, { 'Content-Length': '1048577' })).toMatchObject({
      status: 413,
      type: 'urn:reflex:problem:body-too-large',
    })
  })

  test.each([[1024 * 1024 + 1], [1024 * 1024 * 1024]])(
    'a body of %i bytes that does not say so, and reads a bounded part of it',
    async (size) => {
      let left = size
      const body = new ReadableStream({
        pull(controller) {
          const piece = Math.min(left, 64 * 1024)
          if (piece === 0) controller.close()
          else controller.enqueue(new Uint8Array(piece).fill(0x20))
          left -= piece
        },
      })
      expect(await refused(body, json, { 'Content-Length': '7' })).toMatchObject({ status: 413, type: 'urn:reflex:problem:body-too-large' })
      expect(size - left).toBeLessThan(102 * 1024 * 1024)
    },
  )

  test('a body of 1 MiB only for what is in it', async () => {
    expect(await post(JSON.stringify(message()).padEnd(1024 * 1024))).toHaveLength(1)
  })

  test('a body that breaks off', async () => {
    const body = new ReadableStream({
      pull(controller) {
        controller.error(new Error('gone'))
      },
    })
    expect(await refused(body)).toMatchObject({ status: 400, type: 'urn:reflex:problem:body-cut-short' })
  })

  test('an event over 100 kB, and says which', async () => {
    const problem = await refused(JSON.stringify([message(), message('x'.repeat(100_001)), message()]))
    expect(problem).toMatchObject({ status: 413, type: 'urn:reflex:problem:event-too-large', errors: [{ index: 1, path: '' }] })
    expect(problem.detail).toContain('event 1')
  })

  test('a batch with bad events as a whole, and names each', async () => {
    const { content: _content, ...cut } = message()
    const problem = await refused(JSON.stringify([message(), cut, message(), { type: 'nope' }, null]))
    expect(problem).toMatchObject({ status: 400, type: 'urn:reflex:problem:invalid-event' })
    expect(problem.errors?.map(({ index, path }) => [index, path])).toEqual([
      [1, 'content'],
      [3, 'type'],
      [4, ''],
    ])
    expect(problem.detail).toContain('3 of 5')
  })

  test('bad lines, by their numbers', async () => {
    const problem = await refused(`\n${JSON.stringify(message())}\n{"type":\n\n{"type":"nope"}`, ndjson)
    expect(problem.errors).toEqual([
      { index: 1, path: '', message: expect.stringMatching(/^line 3: malformed JSON at position 8 /) },
      { index: 2, path: 'type', message: expect.stringMatching(/^line 5: unknown type/) },
    ])
  })

  test('an event of another scope than the path', async () => {
    const problem = await refused(JSON.stringify([{ ...message(), scope: 'other' }]), json, {}, { scope: 'a' })
    expect(problem.errors).toMatchObject([{ index: 0, path: 'scope' }])
  })

  test('a single event without an index', async () => {
    expect((await refused('{"type":"ws.message"}')).errors?.every((error) => !('index' in error))).toBe(true)
  })
})

describe('whatever comes', () => {
  const anything = fc.oneof(
    fc.json(),
    fc.string(),
    fc.uint8Array(),
    fc
      .record({
        type: fc.constantFrom('ws.message', 'http.request', 'x'),
        content: fc.jsonValue(),
        connection_id: fc.string(),
        body: fc.jsonValue(),
      })
      .map((value) => JSON.stringify(value)),
    fc.array(fc.record({ ...typed(cloudMessage()), data: fc.jsonValue(), subject: fc.string() })).map((value) => JSON.stringify(value)),
  )
  function typed(value: Record<string, unknown>) {
    return Object.fromEntries(
      Object.entries(value).map(([name, held]) => [name, fc.oneof({ weight: 9, arbitrary: fc.constant(held) }, fc.jsonValue())]),
    )
  }

  test('nothing but a Problem is thrown', async () => {
    await assertProperty(
      'http/body/parse-events: any body',
      fc.asyncProperty(anything, fc.constantFrom(json, ndjson, cloud, cloudBatch), fc.string(), async (body, type, traceparent) => {
        const header = /^[\x21-\x7e]+$/.test(traceparent) ? { traceparent } : undefined
        const events = await post(body, type, header).catch((error: unknown) => error)
        expect(Array.isArray(events) || events instanceof Problem).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('an accepted event is accepted again, unchanged', async () => {
    const accepted = fc.record(
      {
        type: fc.constant('ws.message'),
        connection_id: fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }),
        content: fc.string({ unit: 'grapheme' }),
        id: fc.uuid(),
        scope: fc.constantFrom('default', 'a/b'),
        timestamp: fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true }).map((date) => date.toISOString()),
        extra: fc.jsonValue(),
      },
      { requiredKeys: ['type', 'connection_id', 'content'] },
    )
    await assertProperty(
      'http/body/parse-events: accepted events',
      fc.asyncProperty(fc.array(accepted, { minLength: 1, maxLength: 5 }), async (values) => {
        const text = JSON.stringify(values)
        fc.pre(!text.includes('__proto__'))
        const first = await post(text)
        const sent: unknown[] = JSON.parse(text)
        for (const [index, event] of first.entries()) expect(event).toMatchObject(sent[index] ?? {})
        expect(JSON.stringify(await post(JSON.stringify(first)))).toBe(JSON.stringify(first))
        const lines = first.map((event) => JSON.stringify(event)).join('\n')
        expect(JSON.stringify(await post(lines, ndjson))).toBe(JSON.stringify(first))
      }),
    )
  })
})
