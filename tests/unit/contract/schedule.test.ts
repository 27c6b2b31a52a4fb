import { expect, test } from 'vitest'
import { fromZod } from '../../../src/contract/problem.ts'
import { nextTick, schedule } from '../../../src/contract/settings/schedule.ts'

test.each([
  ['every day', /^not a cron expression such as "0 6 \* \* \*": .*five.* parts are required$/],
  ['0 25 * * *', /^not a cron expression such as "0 6 \* \* \*": .*25$/],
  ['0 0 31 2 *', /^this cron expression never comes due$/],
])('the cron expression %s is refused with the reason, in one sentence', (cron, reason) => {
  const { error } = schedule.safeParse({ cron })
  expect(error && fromZod(error)).toEqual([{ path: 'cron', message: expect.stringMatching(reason) }])
})

test('a timer with fractions of a second ticks once at a time, also where the quotient is rounded down', () => {
  const [after, anchor] = [1_796_663_267_016, 1_796_053_013_515]
  expect(nextTick({ every_s: 835.9637 }, after, anchor)).toBe(after + 835_963.7)
})
