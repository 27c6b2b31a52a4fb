import { expect, test } from 'vitest'
import { farSpanOf, spanOf } from '../../../src/features/learning/reflexes/facts/ranges.ts'

const seen = (...values: number[]) => Array.from({ length: 120 }, (_, index) => [values[index % values.length] ?? 0])

test.each([
  ['no zero where all were more', seen(1, 95, 40), (low: number) => low > 0],
  ['no zero where all were less', seen(-1, -95, -40), (_low: number, high: number) => high < 0],
  ['less than the least where it stays above zero', seen(50, 95, 70), (low: number) => low > 0 && low < 50],
  ['values about zero where it was seen', seen(0, 95, 40), (low: number, high: number) => low < 0 && high > 95],
])('a range that decisions took accepts %s', (_, values, isRight) => {
  const [low, high] = spanOf(values) ?? [Number.NaN, Number.NaN]
  expect(isRight(low, high)).toBe(true)
})

test.each([
  ['order numbers', seen(1_000_001, 1_000_009, 1_000_005), 1_000_001, 1_000_009],
  ['times in ms', seen(1_767_225_600_000, 1_767_225_600_250), 1_767_225_600_000, 1_767_225_600_250],
  ['one number alone', seen(123_456_789), 123_456_789, 123_456_789],
  ['negative numbers', seen(-1_000_009, -1_000_001), -1_000_009, -1_000_001],
])('a range of large and close %s holds all of them, and little more', (_, values, least, most) => {
  const [low, high] = spanOf(values) ?? [Number.NaN, Number.NaN]
  const width = most - least
  expect([low <= least, high >= most]).toEqual([true, true])
  expect([low >= least - width, high <= most + width]).toEqual([true, true])
  const [far_low, far_high] = farSpanOf(values.flat()) ?? [Number.NaN, Number.NaN]
  expect([far_low <= least, far_high >= most]).toEqual([true, true])
})

test('a range of few digits is written with few', () => {
  expect(spanOf(seen(10, 20, 40))).toEqual([9.25, 40.75])
  expect(spanOf(seen(100, 101.7, 133.3))).toEqual([99.1675, 134.133])
})
