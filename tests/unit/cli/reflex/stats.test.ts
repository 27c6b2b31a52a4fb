import { expect, test } from 'vitest'
import { amount, trend } from '../../../../cli/reflex/stats.ts'

test('a value is written in its unit', () => {
  expect([amount(0.956, 'share'), amount(1234, 'count'), amount(0.5, 'usd'), amount(1500, 'ms'), amount(0, 'time')]).toEqual([
    '95.6 %',
    '1,234',
    '$0.5000',
    '1.50 s',
    '1970-01-01T00:00:00.000Z',
  ])
  expect(amount(null, 'share')).toBeNull()
})

test('a trend has a bar for each bucket, and a gap where there is no data', () => {
  expect(trend([0, 5, 10, null, -3])).toBe('▁▅█ ▁')
  expect(trend([0, 0])).toBe('▁▁')
  expect(trend([])).toBe('')
})
