import { expect, test } from 'vitest'
import { backoff, pauses } from '../../../src/base/backoff.ts'

test('a pause doubles with each failure, up to the longest', () => {
  const after = (of: keyof typeof pauses) => [1, 2, 3, 7, 5000].map((failures) => backoff(pauses[of], failures))
  expect(after('job')).toEqual([2000, 4000, 8000, 60_000, 60_000])
  expect(after('message')).toEqual([500, 1000, 2000, 32_000, 3_600_000])
  expect(after('read')).toEqual([5000, 5000, 5000, 5000, 5000])
})
