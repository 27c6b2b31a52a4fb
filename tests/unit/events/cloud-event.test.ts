import { describe, expect, test } from 'vitest'
import { hidesNothing } from '../../../src/base/secrets.ts'
import { builtInEvents, eventUnion } from '../../../src/core/event.ts'
import { parseCloudEvent } from '../../../src/events/cloud-event.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const rules = {
  union: eventUnion(builtInEvents),
  types: builtInEvents.map((schema) => schema.shape.type.value),
  defaults: { now: Date.parse('2026-11-21T05:00:00.000Z'), source: 'alice' },
  secrets: hidesNothing,
}
const valid = {
  specversion: '1.0',
  id: 'c-1',
  source: '/sensors/7',
  type: 'file.change',
  subject: 'team-a/x',
  time: '2026-11-21T07:00:00+02:00',
  datacontenttype: 'application/json',
  traceparent: `00-${trace}-00f067aa0ba902b7-01`,
  data: { path: '/etc/passwd', change_type: 'modified' },
}

describe('a CloudEvent', () => {
  test('becomes an event', () => {
    expect(parseCloudEvent(valid, rules)).toEqual({
      ok: true,
      event: {
        id: expect.stringMatching(/^ce:[0-9a-f]{32}$/),
        source: '/sensors/7',
        type: 'file.change',
        scope: 'team-a/x',
        timestamp: '2026-11-21T05:00:00.000Z',
        meta: {
          trace_id: trace,
          parent_id: '00f067aa0ba902b7',
          trace_flags: '01',
          correlation_id: null,
          causation_id: null,
          sent_id: 'c-1',
        },
        path: '/etc/passwd',
        change_type: 'modified',
      },
    })
  })

  test('is the same event only if both its source and its id are the same', () => {
    const idOf = (fields: object) => {
      const parsed = parseCloudEvent({ ...valid, ...fields }, rules)
      return parsed.ok ? parsed.event.id : null
    }
    expect(idOf({ subject: 'team-b', time: null })).toBe(idOf({}))
    const ids = [idOf({}), idOf({ source: '/sensors/8' }), idOf({ id: 'c-2' }), idOf({ source: '/sensors/7c', id: '-1' })]
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('needs no subject, time or traceparent, and accepts null for them', () => {
    const { id, source, type, data } = valid
    expect(parseCloudEvent({ specversion: '1.0', id, source, type, data }, rules)).toMatchObject({ ok: true, event: { scope: 'default' } })
    expect(parseCloudEvent({ ...valid, subject: null, time: null, traceparent: null }, rules)).toMatchObject({
      ok: true,
      event: { scope: 'default', timestamp: '2026-11-21T05:00:00.000Z' },
    })
  })

  test.each<[string, unknown, string]>([
    ['specversion', '0.3', 'specversion'],
    ['specversion', undefined, 'specversion'],
    ['id', undefined, 'id'],
    ['id', 'x'.repeat(129), 'id'],
    ['source', '', 'source'],
    ['type', undefined, 'type'],
    ['type', 'nope', 'type'],
    ['subject', 'a b', 'subject'],
    ['time', 'noon', 'time'],
    ['data', [1], 'data'],
    ['data', 'text', 'data'],
    ['data', undefined, 'data.path'],
    ['data', { ...valid.data, change_type: 'eaten' }, 'data.change_type'],
    ['data', { ...valid.data, id: 'x' }, 'data.id'],
    ['data', JSON.parse('{"path":"x","change_type":"created","__proto__":{}}'), 'data.__proto__'],
    ['data_base64', 'eA==', 'data_base64'],
  ])('is refused with %s: %j, under the sender’s own name for it', (field, value, path) => {
    expect(parseCloudEvent({ ...valid, [field]: value }, rules)).toMatchObject({
      ok: false,
      errors: expect.arrayContaining([expect.objectContaining({ path })]),
    })
  })

  test('is refused under a path of another scope', () => {
    expect(parseCloudEvent(valid, { ...rules, scope: 'team-b' })).toMatchObject({ ok: false, errors: [{ path: 'subject' }] })
  })

  test.each([null, [], 'x', 1])('is no %j', (value) => {
    expect(parseCloudEvent(value, rules)).toMatchObject({ ok: false, reason: 'invalid' })
  })
})
