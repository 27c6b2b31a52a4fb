import { describe, expect, test } from 'vitest'
import { countAct, countAnswer, isAwaited, occasionOf, shareFor, unitHash } from '../../../src/evidence/draw.ts'

const act = { event_id: 'not-drawn', salt: 's', share: 0, risk: 'outside', is_new: false } as const
/** A pace that has long been answered. */
const late = { acts: 1_000_000_000, unaudited: 0, judged: 1_000_000_000 }

describe('an act', () => {
  test('that reaches outside is audited at the latest after nineteen that were not', () => {
    expect(occasionOf({ ...late, unaudited: 18 }, act)).toBeNull()
    expect(occasionOf({ ...late, unaudited: 19 }, act)).toBe('due')
    expect(occasionOf({ ...late, unaudited: 19 }, { ...act, risk: 'final' })).toBe('due')
    expect(occasionOf({ ...late, unaudited: 19 }, { ...act, risk: 'inside' })).toBeNull()
  })

  test('that is due soon is audited if nineteen with one of its values were not', () => {
    const stale = { ...late, unaudited: 9, values: { north: 19, small: 3 } }
    expect(occasionOf(stale, { ...act, values: ['small', 'north'] })).toBe('due')
    expect(occasionOf(stale, { ...act, values: ['small', 'south'] })).toBeNull()
    expect(occasionOf({ ...stale, values: { north: 18 } }, { ...act, values: ['north'] })).toBeNull()
    expect(occasionOf({ ...stale, unaudited: 8 }, { ...act, values: ['north'] })).toBeNull()
    expect(occasionOf(stale, { ...act, risk: 'inside', values: ['north'] })).toBeNull()
  })

  test('with a new value is audited where it reaches outside, and inside unless audits are off', () => {
    const is_new = { ...act, is_new: true }
    expect(occasionOf(late, is_new)).toBe('new')
    expect(occasionOf(late, { ...is_new, risk: 'inside' })).toBeNull()
    expect(occasionOf(late, { ...is_new, risk: 'inside', share: 1e-12 })).toBe('new')
  })

  test('is one of the first five after a proof, unless audits are off', () => {
    const first = { ...act, risk: 'inside', share: 1e-12 } as const
    expect([0, 1, 4].map((acts) => occasionOf({ acts, unaudited: 0 }, first))).toEqual(['first', 'first', 'first'])
    expect(occasionOf(late, first)).toBeNull()
    expect(occasionOf({ acts: 0, unaudited: 0 }, { ...first, share: 0 })).toBeNull()
  })

  test('is audited once after another act of its reflex disagreed, unless audits are off', () => {
    const next = { ...late, next: true } as const
    const inside = { ...act, risk: 'inside', share: 1e-12 } as const
    expect([occasionOf(next, inside), occasionOf(next, { ...inside, share: 0 })]).toEqual(['first', null])
    expect([countAct({ ...next, proof: 0 }, 'first').next, countAct({ ...next, proof: 0 }, null).next]).toEqual([undefined, true])
  })

  test('is drawn by the hash of its event', () => {
    const share = unitHash('s\0not-drawn')
    expect(occasionOf(late, { ...act, risk: 'inside', share })).toBeNull()
    expect(occasionOf(late, { ...act, risk: 'inside', share: share + 1e-9 })).toBe('drawn')
  })

  test('outside is audited where twenty before it have no verdict yet, and only then', () => {
    const waiting = { ...late, judged: late.acts - 20 }
    expect([isAwaited(waiting), isAwaited({ ...waiting, judged: waiting.judged + 1 })]).toEqual([true, false])
    expect(isAwaited({ acts: 20, unaudited: 0 })).toBe(true)
    expect(occasionOf(waiting, act)).toBe('due')
    expect(occasionOf({ ...waiting, judged: waiting.judged + 1 }, act)).toBeNull()
    expect(occasionOf(waiting, { ...act, risk: 'inside' })).toBeNull()
  })

  test('has a verdict with the latest answer, and a disagreement has the next ones audited as after a proof', () => {
    const pace = { proof: 7, acts: 90, unaudited: 3, judged: 60 }
    expect(countAnswer(pace, 80, true)).toEqual({ ...pace, judged: 80 })
    expect(countAnswer(pace, 50, false)).toEqual({ ...pace, doubted: 90 })
    const first = { ...act, share: 1e-12 }
    expect(occasionOf(late, first)).toBeNull()
    expect(occasionOf({ ...late, doubted: late.acts - 4 }, first)).toBe('first')
  })

  test('is counted, and an audit begins the count of those without one again', () => {
    expect(countAct({ proof: 7, acts: 3, unaudited: 2 }, null)).toEqual({ proof: 7, acts: 4, unaudited: 3 })
    expect(countAct({ proof: 7, acts: 3, unaudited: 2 }, 'drawn')).toEqual({ proof: 7, acts: 4, unaudited: 0 })
    const pace = { proof: 7, acts: 3, unaudited: 2, values: { north: 2, small: 1 } }
    expect(countAct(pace, null, ['north', 'south']).values).toEqual({ north: 3, small: 1, south: 1 })
    expect(countAct(pace, 'drawn', ['north', 'south']).values).toEqual({ small: 1 })
  })
})

test('a draw alone audits at least one in twenty of what reaches outside', () => {
  expect([shareFor('inside', 0.01), shareFor('outside', 0.01), shareFor('final', 0), shareFor('outside', 0.2)]).toEqual([
    0.01, 0.05, 0.05, 0.2,
  ])
})

test('the number of a text lies evenly between 0 and 1', () => {
  const all = Array.from({ length: 1000 }, (_, at) => unitHash(`t${at}`))
  expect(Math.min(...all)).toBeLessThan(0.01)
  expect(Math.max(...all)).toBeLessThan(1)
  expect(Math.max(...all)).toBeGreaterThan(0.99)
})
