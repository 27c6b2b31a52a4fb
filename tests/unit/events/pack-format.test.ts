import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodePack, encodePack, PackDamaged, type PackedEvent } from '../../../src/store/packs/format.ts'
import { assertProperty } from '../../support/property.ts'

const at = fc.integer({ min: 1_700_000_000_000, max: 2_100_000_000_000 })
const text = fc.string({ unit: 'binary' })
const event: fc.Arbitrary<PackedEvent> = fc.record({
  seq: fc.tuple(at, fc.nat({ max: 2 ** 21 - 1 })).map(([ms, place]) => (BigInt(ms) << 21n) + BigInt(place)),
  id: text,
  scope: text,
  type: text,
  status: fc.constantFrom('completed', 'ignored'),
  attempts: fc.nat(),
  error: fc.option(text),
  accepted_at: at,
  ended_at: fc.option(at),
  revision: fc.nat(),
  agent: text,
  trace_id: text,
  log_from: fc.nat(),
  kinds: fc.nat(),
  skills: text,
  payload: fc.jsonValue().map((data): unknown => JSON.parse(JSON.stringify({ data }))),
})

const anEvent: PackedEvent = {
  seq: 1_700_000_000_000n << 21n,
  id: 'e-1',
  scope: 'orders/1',
  type: 'order.placed',
  status: 'completed',
  attempts: 1,
  error: null,
  accepted_at: 1_700_000_000_000,
  ended_at: 1_700_000_000_500,
  revision: 3,
  agent: 'refunds',
  trace_id: 't-1',
  log_from: 1,
  kinds: 0,
  skills: '',
  payload: {},
}

const DAMAGED = /^The pack 7 of the event log cannot be read: /

/** `undefined` for a pack that says that it is damaged. */
function readUnlessDamaged(data: string): PackedEvent[] | undefined {
  try {
    return decodePack('7', data)
  } catch (error) {
    if (error instanceof PackDamaged && DAMAGED.test(error.detail ?? '')) return undefined
    throw error
  }
}

const withChangedDigit = (data: string, digit: number): string =>
  data.slice(0, digit) + (Number.parseInt(data[digit] ?? '', 16) ^ 1).toString(16) + data.slice(digit + 1)

test('a pack has each event as it was, and never other events after a byte has changed', () => {
  const property = fc.property(fc.array(event, { minLength: 1, maxLength: 20 }), fc.nat(), (events, place) => {
    const { data } = encodePack(events)
    expect(decodePack('7', data)).toEqual(events)
    // Some bits say nothing: a time in the head, and what fills the last byte of the stream.
    expect(readUnlessDamaged(withChangedDigit(data, place % data.length)) ?? events).toEqual(events)
  })
  assertProperty('store/packs: format', property)
})

test('a pack is damaged by a change of any bit that its events or its sum depend on', () => {
  const { data } = encodePack([{ ...anEvent, payload: { text: 'refund the order' } }])
  const damaged = Array.from(data, (_, digit) => readUnlessDamaged(withChangedDigit(data, digit))).filter((read) => read === undefined)
  // The head has ten bytes, of which eight may say nothing, and the last byte of the stream one.
  expect(damaged.length).toBeGreaterThanOrEqual(data.length - 2 * (10 + 1))
})
