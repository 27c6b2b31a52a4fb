import { expect, test } from 'vitest'
import { joined, placesIn, toRanges } from '../../../src/traces/ranges.ts'

test('ranges that overlap or touch are joined, and hold the same numbers', () => {
  const ranges: [number, number][] = [
    [7, 9],
    [1, 3],
    [2, 2],
    [4, 5],
    [8, 12],
    [20, 20],
  ]
  const numbers = [...new Set(placesIn(ranges))].toSorted((one, other) => one - other)
  expect(joined(ranges)).toEqual(toRanges(numbers))
  expect(joined([])).toEqual([])
})
