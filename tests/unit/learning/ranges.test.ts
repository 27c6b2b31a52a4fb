import { expect, test } from 'vitest'
import { spanOf } from '../../../src/features/learning/reflexes/facts/ranges.ts'

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
