import { describe, expect, test } from 'vitest'
import { hidesNothing } from '../../../src/base/secrets.ts'
import { builtInEvents, eventUnion } from '../../../src/core/event.ts'
import { type EventRules, parseEvent } from '../../../src/events/parse-event.ts'

const now = Date.parse('2026-11-21T05:00:00.000Z')
const rules: EventRules = {
  union: eventUnion(builtInEvents),
  types: builtInEvents.map((schema) => schema.shape.type.value),
  defaults: { now, source: 'alice' },
  secrets: hidesNothing,
}
const valid = { type: 'ws.message', connection_id: 'c1', content: 'hello' }
const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)])

describe('parseEvent', () => {
  test('fills what may be left out', () => {
    const parsed = parseEvent(valid, rules)
    expect(parsed).toMatchObject({
      ok: true,
      event: {
        ...valid,
        scope: 'default',
        source: 'alice',
        timestamp: '2026-11-21T05:00:00.000Z',
        meta: { correlation_id: null, causation_id: null },
      },
    })
  })

  test('keeps fields that the type does not know', () => {
    expect(parseEvent({ ...valid, extra: { nested: [1, null, 'x'] } }, rules)).toMatchObject({
      event: { extra: { nested: [1, null, 'x'] } },
    })
  })

  test('gives an event the scope that the path fixes', () => {
    expect(parseEvent(valid, { ...rules, scope: 'a/b' })).toMatchObject({ ok: true, event: { scope: 'a/b' } })
    expect(parseEvent({ ...valid, scope: 'a/b' }, { ...rules, scope: 'a/b' })).toMatchObject({ ok: true })
    expect(parseEvent({ ...valid, scope: 'c' }, { ...rules, scope: 'a/b' })).toMatchObject({ ok: false, errors: [{ path: 'scope' }] })
  })

  test.each<[string, unknown, string, string, RegExp]>([
    ['null', null, 'invalid', '', /JSON object/],
    ['an array', [], 'invalid', '', /JSON object/],
    ['a string', 'x', 'invalid', '', /JSON object/],
    ['no type', { connection_id: 'c1', content: 'hello' }, 'invalid', 'type', /known: ws\.message, http\.request/],
    ['a type that is not a string', { ...valid, type: 7 }, 'invalid', 'type', /type is required/],
    ['an object around events', { events: [valid] }, 'invalid', 'type', /type is required; send several events as an array, without/],
    ['an unknown type', { ...valid, type: 'nope' }, 'unknown_type', 'type', /"nope"; known: ws\.message, /],
    ['a type from the prototype', { ...valid, type: 'constructor' }, 'unknown_type', 'type', /unknown/],
    ['a missing field', { type: 'ws.message', connection_id: 'c1' }, 'invalid', 'content', /string/],
    ['a bad id', { ...valid, id: 7 }, 'invalid', 'id', /string/],
    ['an id with a NUL', { ...valid, id: 'a\0b' }, 'invalid', 'id', /control/],
    ['a bad scope', { ...valid, scope: 'a b' }, 'invalid', 'scope', /128 characters/],
    ['a bad time', { ...valid, timestamp: 'yesterday' }, 'invalid', 'timestamp', /datetime/i],
    ['a bad meta', { ...valid, meta: 'x' }, 'invalid', 'meta', /object/],
    ['a bad trace id', { ...valid, meta: { trace_id: 'x' } }, 'invalid', 'meta.trace_id', /32/],
    ['__proto__', JSON.parse('{"type":"ws.message","a":[{"__proto__":{"x":1}}]}'), 'invalid', 'a[0].__proto__', /reserved name/],
    ['half a surrogate pair', { ...valid, content: '\ud800' }, 'invalid', 'content', /surrogate/],
    ['a number beyond a double', { ...valid, big: JSON.parse('1e999') }, 'invalid', 'big', /range of a double/],
    ['65 levels', { ...valid, nested: deep(64) }, 'invalid', `nested${'[0]'.repeat(63)}`, /deeper than 64/],
    ['more than 100 kB', { ...valid, content: 'x'.repeat(100_001) }, 'too_large', '', /at most 100000/],
    ['more than 100 kB in UTF-8', { ...valid, content: 'é'.repeat(50_000) }, 'too_large', '', /at most 100000/],
  ])('refuses %s', (_name, value, reason, path, message) => {
    expect(parseEvent(value, rules)).toMatchObject({ ok: false, reason, errors: [{ path, message: expect.stringMatching(message) }] })
  })

  test('takes 64 levels, and what is just under 100 kB', () => {
    expect(parseEvent({ ...valid, nested: deep(63) }, rules)).toMatchObject({ ok: true })
    expect(parseEvent({ ...valid, content: 'x'.repeat(99_000) }, rules)).toMatchObject({ ok: true })
  })

  test('names a few errors of an event, not thousands', () => {
    const parsed = parseEvent(
      { type: 'http.request', id: 1, scope: 1, source: 1, timestamp: 1, meta: {}, method: 1, path: 1, body: 1 },
      rules,
    )
    expect(parsed).toMatchObject({ ok: false })
    expect(parsed.ok ? [] : parsed.errors.map(({ path }) => path)).toEqual(['id', 'scope', 'source', 'timestamp', 'method', 'path'])
  })
})
