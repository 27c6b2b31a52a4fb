import { describe, expect, test } from 'vitest'
import { equivalenceOf } from '../../../src/features/replay/contract/replay.ts'
import { isMasked } from '../../../src/base/secrets.ts'
import { Comparison, differences } from '../../../src/features/replay/report.ts'

const at = (span_id: string) => ({ span_id })

test('a decision that cannot be made again counts as unknown, and as neither same nor changed', () => {
  const comparison = new Comparison()
  comparison.compare(at('a'), 'turn', { recorded: 1, replayed: 1 })
  comparison.compare(at('b'), 'turn', { recorded: 1, replayed: 2 })
  comparison.cannot(at('c'), 'turn', 'the recording lacks it')
  expect(comparison).toMatchObject({ compared: 2, changed: 1, decisions: { turn: { same: 1, changed: 1, unknown: 1 } } })
})

test('a comparison counts each decision by its kind, and names what differs', () => {
  const comparison = new Comparison()
  const [same, changed, hashed, diverged, masked, open] = [at('a'), at('b'), at('c'), at('d'), at('e'), at('f')]
  expect(comparison.compare(same, 'reflex', { recorded: { x: 1 }, replayed: { x: 1 } })).toBe(true)
  expect(comparison.compare(changed, 'reflex', { recorded: { x: 1, y: 2 }, replayed: { x: 2 } })).toBe(false)
  comparison.same(hashed, 'turn')
  comparison.diverge(diverged, 'effect', { path: '/x', recorded: 1, replayed: null })
  comparison.compareMasked(masked, 'skill', { recorded: 1, replayed: 1 })
  comparison.compareMasked(open, 'skill', { recorded: 1, replayed: 2 })
  expect([comparison.compared, comparison.changed]).toEqual([5, 2])
  expect(comparison.decisions).toEqual({
    reflex: { same: 1, changed: 1, unknown: 0 },
    turn: { same: 1, changed: 0, unknown: 0 },
    effect: { same: 0, changed: 1, unknown: 0 },
    skill: { same: 1, changed: 0, unknown: 1 },
  })
  expect(comparison.divergences).toEqual([
    { span_id: 'b', kind: 'reflex', path: '/x', recorded: 1, replayed: 2 },
    { span_id: 'b', kind: 'reflex', path: '/y', recorded: 2, replayed: null },
    { span_id: 'd', kind: 'effect', path: '/x', recorded: 1, replayed: null },
  ])
  const reason = 'it was decided on redacted values, and is decided otherwise without them'
  expect(comparison.unknown).toEqual([{ span_id: 'f', kind: 'skill', reason }])
  expect([same, changed, hashed, diverged, masked, open].filter((one) => !comparison.covered.has(one))).toEqual([])
})

describe('two JSON values differ', () => {
  const paths = (recorded: unknown, replayed: unknown) => differences(recorded, replayed).map(({ path }) => path)

  test('at the paths of their parts, outermost first', () => {
    expect(differences({ a: [1, { b: 2 }], c: 3 }, { a: [1, { b: 4 }, 5], d: 6 })).toEqual([
      { path: '/a/1/b', recorded: 2, replayed: 4 },
      { path: '/a/2', recorded: null, replayed: 5 },
      { path: '/c', recorded: 3, replayed: null },
      { path: '/d', recorded: null, replayed: 6 },
    ])
    expect(differences({ a: [1, 2] }, { a: [1] })).toEqual([{ path: '/a/1', recorded: 2, replayed: null }])
    expect([paths(1, '1'), paths([1], { 0: 1 }), paths({ 0: 1 }, [1]), paths([1], 1), paths(null, {})]).toEqual([
      [''],
      [''],
      [''],
      [''],
      [''],
    ])
  })

  test('not by the order of fields, nor by fields that JSON does not have', () => {
    const pairs: [unknown, unknown][] = [
      [
        { a: 1, b: { c: 2 } },
        { b: { c: 2 }, a: 1 },
      ],
      [{ a: undefined }, {}],
      [undefined, null],
      [[undefined], [null]],
      [new Date(0), '1970-01-01T00:00:00.000Z'],
    ]
    expect(pairs.flatMap(([recorded, replayed]) => paths(recorded, replayed))).toEqual([])
  })

  test('at twenty places at most that are shown', () => {
    const numbers = (step: number) => Array.from({ length: 30 }, (_, index) => index * step + step)
    expect([paths(numbers(1), numbers(2)).length, paths(numbers(1).slice(0, 20), numbers(2).slice(0, 20)).length]).toEqual([20, 20])
  })
})

test('a value that holds a placeholder of the log is masked', () => {
  const hash = `sha256:${'0a'.repeat(32)}`
  expect([{ a: ['x [secret]'] }, '[redacted]', { a: hash }, `x ${hash} y`].map(isMasked)).toEqual([true, true, true, true])
  expect(['secret', '[hidden]', `${hash}0`, `x${hash}`, hash.slice(0, -1), hash.toUpperCase(), null, undefined].map(isMasked)).toEqual(
    Array(8).fill(false),
  )
})

test('a replay is equivalent only where nothing changed and nothing is unknown', () => {
  expect(equivalenceOf({ changed: 0, unknown: 0 })).toBe(true)
  expect(equivalenceOf({ changed: 0, unknown: 1 })).toBeNull()
  expect(equivalenceOf({ changed: 1, unknown: 1 })).toBe(false)
})
