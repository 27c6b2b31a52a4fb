import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { lineEvent } from '../../../cli/demo/log-event.ts'
import { batches } from '../../../cli/demo/send-lines.ts'

function event(number: number, length = 1) {
  const made = lineEvent(`Nov 20 06:55:10 host sshd[1]: ${'\u0001'.repeat(length)}x`, number, Date.parse('2026-11-21T08:00:00Z'))
  if (typeof made === 'string') throw new Error(made)
  return made
}

test('batches hold every event once, in order, and stay within what a request may carry', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 8000 }), { maxLength: 300 }), fc.integer({ min: 1, max: 200 }), (lengths, most) => {
      const events = lengths.map((length, index) => event(index, length))
      const made = Array.from(batches(events, most))
      expect(made.flat()).toEqual(events)
      for (const batch of made) {
        expect(batch.length).toBeLessThanOrEqual(Math.min(most, 100))
        expect(JSON.stringify(batch).length).toBeLessThan(1024 * 1024)
      }
    }),
    { numRuns: 20 },
  )
})
