import { describe, expect, test } from 'vitest'
import { noValues, noveltyOf, teachValues, traitsOf, type EventTraits, type TaughtValues } from '../../../src/evidence/novelty.ts'

const sent = (sender: string, ...numbers: [place: string, value: number][]): EventTraits => ({
  sender,
  numbers: numbers.map(([place, value]) => ({ place, value })),
})
const taught = (all: readonly EventTraits[]): TaughtValues => all.reduce(teachValues, noValues())
const times = (count: number, of: (at: number) => EventTraits): EventTraits[] => Array.from({ length: count }, (_, at) => of(at))
const known = taught(times(20, (at) => sent('a', ['n', at])))

describe('the traits of an event', () => {
  test('are its sender, and the numbers of the fields that do not name it', () => {
    const naming = { id: '1', scope: 's 2', timestamp: 3, type: 'note 4' }
    const event = { ...naming, source: 'form 5', meta: { sender: 'key:a', at: 6 }, amount: 7, text: 'a refund of 8', more: { deep: 9 } }
    expect(traitsOf(event)).toEqual(sent('key:a', ['amount', 7], ['text of', 8], ['more.deep', 9]))
    expect(traitsOf({ ...event, meta: {} }).sender).toBe('form 5')
  })

  test('reach three fields deep, and pass over lists, flags and nothing', () => {
    const event = { source: 's', meta: {}, a: { b: { c: { d: 4 }, n: 3 } }, list: [1], yes: true, none: null }
    expect(traitsOf(event).numbers).toEqual([
      { place: 'a.b.c.d', value: 4 },
      { place: 'a.b.n', value: 3 },
    ])
    const deeper = { source: 's', meta: {}, a: { b: { c: { d: { e: 5 } } } } }
    expect(traitsOf(deeper).numbers).toEqual([])
  })
})

describe('what a proof was judged on', () => {
  test('has the range of the numbers at each place, the first and the last included', () => {
    const { numbers, senders } = taught([sent('a', ['n', 5]), sent('b', ['n', 9]), sent('a', ['n', 2])])
    expect(numbers).toEqual({ n: { low: 2, high: 9, n: 3, stretched: 0 } })
    expect(senders).toEqual({ taught: { a: 2, b: 1 }, rare: 0 })
  })

  test('counts what was beyond the range from the 21st number on', () => {
    const stretchedBy = (...values: number[]) =>
      values.reduce((all, value) => teachValues(all, sent('a', ['n', value])), known).numbers['n']
    expect(known.numbers['n']).toEqual({ low: 0, high: 19, n: 20, stretched: 0 })
    expect(stretchedBy(0, 19)?.stretched).toBe(0)
    expect(stretchedBy(20)?.stretched).toBe(1)
    expect(stretchedBy(-1)?.stretched).toBe(1)
  })

  test('remembers 100 places, and counts further ones together', () => {
    const many = taught(times(103, (at) => sent('a', [`p${at}`, 1])))
    expect(Object.keys(many.numbers)).toHaveLength(100)
    expect(many.rare).toBe(3)
    expect(teachValues(many, sent('a', ['p1', 2])).numbers['p1']).toEqual({ low: 1, high: 2, n: 2, stretched: 0 })
  })

  test('stays as it is when more is taught', () => {
    const before = structuredClone(known)
    teachValues(known, sent('b', ['n', 50], ['m', 1]))
    expect(known).toEqual(before)
  })
})

describe('a novelty', () => {
  test('means nothing before twenty events', () => {
    const few = taught(times(19, () => sent('a', ['n', 1])))
    expect(noveltyOf(few, sent('b', ['n', 9]))).toBeNull()
    expect(noveltyOf(teachValues(few, sent('a', ['n', 1])), sent('b'))).toBe('its sender is new')
    const of_rare = { ...noValues(), senders: { taught: {}, rare: 20 } }
    expect(noveltyOf(of_rare, sent('b'))).toBeNull()
  })

  test('is a sender that was never seen, where few were seen once', () => {
    expect(noveltyOf(known, sent('a'))).toBeNull()
    expect(noveltyOf(known, sent('toString'))).toBe('its sender is new')
    // Every second sender was seen once.
    expect(noveltyOf(taught(times(40, (at) => sent(at % 2 === 0 ? 'a' : `b${at}`))), sent('c'))).toBeNull()
    // A value in twenty was new: that is few.
    expect(noveltyOf(taught(times(20, (at) => sent(at === 0 ? 'b' : 'a'))), sent('c'))).toBe('its sender is new')
  })

  test('is a number below or above its range, with both ends in it', () => {
    expect([0, 19, 10].map((value) => noveltyOf(known, sent('a', ['n', value])))).toEqual([null, null, null])
    expect(noveltyOf(known, sent('a', ['n', 20]))).toBe('20 at n is beyond 0 to 19')
    expect(noveltyOf(known, sent('a', ['n', -1]))).toBe('-1 at n is beyond 0 to 19')
  })

  test('is found in any number, not in the first alone', () => {
    expect(noveltyOf(known, sent('a', ['n', 3], ['n', 99]))).toBe('99 at n is beyond 0 to 19')
  })

  test('is not a number of an id or a counter, which goes beyond its range again and again', () => {
    const counted = taught(times(100, (at) => sent('a', ['n', at])))
    expect(noveltyOf(counted, sent('a', ['n', 1000]))).toBeNull()
    // Three times is not again and again, and one in ten after that.
    const stretched = (by: number, n: number) =>
      noveltyOf({ ...known, numbers: { n: { low: 0, high: 9, n, stretched: by } } }, sent('a', ['n', 10]))
    expect([stretched(3, 20), stretched(4, 20), stretched(4, 30), stretched(5, 30), stretched(0, 19)].map((one) => one !== null)).toEqual([
      true,
      false,
      true,
      false,
      false,
    ])
  })

  test('is a number at a new place, where few places were seen once', () => {
    expect(noveltyOf(known, sent('a', ['valueOf', 1]))).toBe('it has a number at valueOf')
    const changing = taught(times(40, (at) => sent('a', [`p${at}`, 1])))
    expect(noveltyOf(changing, sent('a', ['new', 1]))).toBeNull()
    expect(noveltyOf({ ...known, rare: 40 }, sent('a', ['new', 1]))).toBeNull()
    // The share of places that were seen once is one in twenty.
    const range = (n: number) => ({ low: 0, high: 9, n, stretched: 0 })
    expect(noveltyOf({ ...known, numbers: { n: range(19), m: range(1) } }, sent('a', ['new', 1]))).toBe('it has a number at new')
  })
})
