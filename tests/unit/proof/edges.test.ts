import { describe, expect, test } from 'vitest'
import { isOther, mayBeAtEdge, moved } from '../../../src/evidence/edges.ts'

const range = (low: number, high: number, n = 50) => ({ low, high, n, stretched: 0 })

describe('a number of an event is moved', () => {
  test('by a twentieth of the range of its place, to either side', () => {
    const event = { type: 'read', heat: 40, by: { load: 0.5 } }
    const ranges = { heat: range(0, 100), 'by.load': range(0, 1) }
    const all = [0, 0.3, 0.6, 0.9].map((draw) => moved(event, ranges, draw)?.event)
    expect(all).toEqual([
      { ...event, heat: 35 },
      { ...event, heat: 45 },
      { ...event, by: { load: 0.45 } },
      { ...event, by: { load: 0.55 } },
    ])
  })

  test('to a whole number where all are whole', () => {
    expect(moved({ level: 3 }, { level: range(1, 5) }, 0)?.event).toEqual({ level: 2 })
  })

  test('by a part of the width of its range, wherever that lies', () => {
    const lowest = (value: number, low: number, high: number) => moved({ heat: value }, { heat: range(low, high) }, 0)?.move.to
    expect(lowest(200, 100, 300)).toBe(190)
    expect(lowest(20.5, 10.5, 30.5)).toBe(19.5)
  })

  test('from either end of its range, which twenty numbers make', () => {
    const lowest = (heat: number) => moved({ heat }, { heat: range(0, 100, 20) }, 0)?.move.to
    expect([0, 100].map(lowest)).toEqual([-5, 95])
  })

  test('three objects deep', () => {
    const deep = { a: { b: { c: { d: 40 } } } }
    expect(moved(deep, { 'a.b.c.d': range(0, 100) }, 0)?.event).toEqual({ a: { b: { c: { d: 35 } } } })
    expect(moved({ top: deep }, { 'top.a.b.c.d': range(0, 100) }, 0)).toBeNull()
  })

  test('also beyond what the proof has seen, where a rule may end', () => {
    expect(moved({ heat: 99 }, { heat: range(0, 100) }, 0.9)?.event).toEqual({ heat: 104 })
  })

  test.each([
    ['it has no range', {}],
    ['its range is of few', { heat: range(0, 100, 19) }],
    ['it is below its range', { heat: range(50, 100) }],
    ['it is above its range', { heat: range(0, 30) }],
    ['it is a text', { note: range(0, 100) }],
    ['its range has one value', { heat: range(40, 40) }],
  ])('not at all if %s', (_, ranges) => {
    expect(moved({ heat: 40, note: '40' }, ranges, 0)).toBeNull()
  })
})

test('an action is another one if more than the moved number differs', () => {
  const at = (to: number | null, level: string, text = '') => ({ tool: 'set', args: { to, level, text } })
  const move = { from: 40, to: 45 }
  expect(isOther(at(38, 'low', 'at 40'), at(43, 'low', 'at 45'), move)).toBe(false)
  expect(isOther(at(38, 'low'), at(38, 'low'), move)).toBe(false)
  expect(isOther(at(38, 'low'), at(43, 'high'), move)).toBe(true)
  expect(isOther(at(38, 'low'), at(50, 'low'), move)).toBe(true)
  expect(isOther(at(38, 'low'), at(null, 'low'), move)).toBe(true)
  expect(isOther(at(38, 'low'), null, move)).toBe(true)
})

test('an action is another one if a value has another type, or a field is missing', () => {
  const move = { from: 40, to: 45 }
  const pairs = [
    [38, '43'],
    ['38', 43],
    [true, false],
    [{}, 5],
    [5, {}],
    [null, {}],
    [{}, null],
    [{ a: 1 }, { a: 1, b: 2 }],
  ]
  for (const [one, other] of pairs) expect(isOther({ to: one }, { to: other }, move)).toBe(true)
})

test('an action that names a number that is moved to zero is the same one', () => {
  const move = { from: 5, to: 0 }
  expect([isOther({ to: 5 }, { to: 0 }, move), isOther({ to: 5 }, { to: 1 }, move)]).toEqual([false, true])
})

test('nine acts without an audit come before one that is audited because it is at an edge', () => {
  expect([8, 9].map((unaudited) => mayBeAtEdge({ unaudited }))).toEqual([false, true])
})
