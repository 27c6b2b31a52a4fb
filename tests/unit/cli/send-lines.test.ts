import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { lineEvent } from '../../../cli/demo/read-log.ts'
import { batches } from '../../../cli/lib/batches.ts'
import { assertProperty } from '../../support/property.ts'

function event(number: number, length = 1) {
  const made = lineEvent(`Nov 20 06:55:10 host sshd[1]: ${'\u0001'.repeat(length)}x`, number, Date.parse('2026-11-21T08:00:00Z'))
  if (typeof made === 'string') throw new Error(made)
  return made
}

test('batches hold every event once, in order, and stay within what a request may carry', async () => {
  await assertProperty(
    'cli/send-lines',
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 8000 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 200 }),
      async (lengths, most) => {
        const events = lengths.map((length, index) => event(index, length))
        const made: unknown[][] = []
        for await (const batch of batches(events, { most })) made.push(batch)
        expect(made.flat()).toEqual(events)
        for (const batch of made) {
          expect(batch.length).toBeLessThanOrEqual(Math.min(most, 100))
          expect(JSON.stringify(batch).length).toBeLessThan(1024 * 1024)
        }
      },
    ),
    { numRuns: 20 },
  )
})

test('a value of a live source is not held back until the batch is full', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  async function* live(): AsyncGenerator<number> {
    yield 1
    yield 2
    await promise
    yield 3
  }
  const made: number[][] = []
  for await (const batch of batches(live(), { linger_ms: 5 })) {
    made.push(batch)
    resolve()
  }
  expect(made).toEqual([[1, 2], [3]])
})
