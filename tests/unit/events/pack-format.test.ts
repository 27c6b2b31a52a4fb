import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodePack, encodePack, type PackedEvent } from '../../../src/store/packs/format.ts'
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

test('a pack has each event as it was, and a changed byte of it is no pack', () => {
  const property = fc.property(fc.array(event, { minLength: 1, maxLength: 20 }), fc.nat(), (events, place) => {
    const { data } = encodePack(events)
    expect(decodePack('7', data)).toEqual(events)
    // The head of the file has bytes that say nothing, such as a time.
    const digit = 20 + (place % (data.length - 20))
    const changed = data.slice(0, digit) + (Number.parseInt(data[digit] ?? '', 16) ^ 1).toString(16) + data.slice(digit + 1)
    expect(() => decodePack('7', changed)).toThrow('The pack 7 of the event log cannot be read')
  })
  assertProperty('store/packs: format', property)
})
