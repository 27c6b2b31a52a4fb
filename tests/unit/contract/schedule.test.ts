import { expect, test } from 'vitest'
import { nextTick } from '../../../src/contract/settings/schedule.ts'

test('a timer with fractions of a second ticks once at a time, also where the quotient is rounded down', () => {
  const [after, anchor] = [1_796_663_267_016, 1_796_053_013_515]
  expect(nextTick({ every_s: 835.9637 }, after, anchor)).toBe(after + 835_963.7)
})
