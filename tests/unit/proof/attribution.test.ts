import { describe, expect, test } from 'vitest'
import { fieldsOf, heldBy, isOfOthers, ownersOf, saysOf } from '../../../src/evidence/attribution.ts'
import { event } from '../agents/agent-fixtures.ts'

describe('the fields of a value', () => {
  test('are its texts, numbers and booleans by their paths', () => {
    const value = { name: 'a', by: { level: 7, urgent: true, none: null }, tags: ['x', 'y'], 'two words': 1 }
    expect([...fieldsOf(value)]).toEqual([
      ['name', 'a'],
      ['by.level', 7],
      ['by.urgent', true],
      ['tags.0', 'x'],
      ['tags.1', 'y'],
    ])
  })

  test('are read six objects deep, or less if it says so', () => {
    const value = { a: { b: { c: { d: { e: { f: 6, g: { h: 7 } } } } } }, one: 1 }
    expect([...fieldsOf(value).keys()]).toEqual(['a.b.c.d.e.f', 'one'])
    expect([...fieldsOf(value, 1).keys()]).toEqual(['one'])
  })

  test('are the first 200', () => {
    expect(fieldsOf(Object.fromEntries(Array.from({ length: 250 }, (_, nth) => [`n${nth}`, nth]))).size).toBe(200)
  })
})

describe('an act of a turn on several events', () => {
  const mails = [
    event({ type: 'mail', id: 'mail-1', text: 'a', order: 4711, level: 7 }),
    event({ type: 'mail', id: 'mail-2', text: 'order 5822 is late', order: 5822, level: 8, urgent: true }),
  ]
  const held = heldBy(mails)
  const owners = (input: object) => ownersOf(input, held)
  const isOfOther = (input: object) => [0, 1].map((place) => isOfOthers(input, held, place))

  test('belongs to the one whose id it names', () => expect(owners({ mail: 'mail-2', queue: 'billing' })).toEqual([1]))

  test('belongs to the one whose value it has, however short', () => {
    expect(owners({ level: 7 })).toEqual([0])
    expect(owners({ level: 9 })).toEqual([0, 1])
  })

  test('belongs to the one whose text has its text or number, of four characters or more', () => {
    expect(owners({ about: 'late' })).toEqual([1])
    expect(owners({ about: 'is l' })).toEqual([1])
    expect(owners({ about: 'lat' })).toEqual([0, 1])
    expect(ownersOf({ order: 5822 }, [['order 4711'], ['order 5822']])).toEqual([1])
    expect(ownersOf({ urgent: true }, [['a true story'], ['a tale']])).toEqual([0, 1])
    expect(ownersOf({ order: '4711' }, [[4711], ['4711']])).toEqual([1])
  })

  test('is of others where it names what they hold, and nothing of its own', () => {
    expect(isOfOther({ mail: 'mail-2' })).toEqual([true, false])
    expect(isOfOther({ mail: 'mail-2', queue: 'billing' })).toEqual([true, false])
    expect(isOfOther({ mail: 'mail-2', from: 'mail-1' })).toEqual([false, false])
    expect(isOfOther({ order: 4711 })).toEqual([false, true])
  })

  test('is of no others by a value that events hold by chance', () => {
    expect(isOfOther({ level: 8 })).toEqual([false, false])
    expect(isOfOther({ urgent: true })).toEqual([false, false])
    expect(isOfOthers({ code: 'abcd' }, [['x'], ['abcd']], 0)).toBe(true)
    expect(isOfOthers({ code: 'abc' }, [['x'], ['abc']], 0)).toBe(false)
  })

  test('speaks of an event by a text or a number of four characters or more', () => {
    const says = (text: string) => [0, 1, 2].map((place) => saysOf(text, held, place))
    expect(says('I answered 5822 today.')).toEqual([false, true, false])
    expect(says('Order 4711 is on its way.')).toEqual([true, false, false])
    expect(says('At level 7: true, and 8 a day.')).toEqual([false, false, false])
  })
})
