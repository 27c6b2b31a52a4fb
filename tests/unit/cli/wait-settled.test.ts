import { expect, test } from 'vitest'
import { isSettled } from '../../../cli/demo/run.ts'
import { ZERO } from '../../../src/kernel/unit.ts'

const state = (counts: { accepted: number; completed: number; ignored: number; dead_lettered: number; cancelled: number }) => ({
  counters: { ...ZERO, ...counts },
  turn: null,
})

test.each([
  ['all have an outcome', { accepted: 4, completed: 1, ignored: 1, dead_lettered: 1, cancelled: 1 }, true],
  ['one has none', { accepted: 4, completed: 1, ignored: 2, dead_lettered: 0, cancelled: 0 }, false],
  ['one is still in the queue', { accepted: 3, completed: 3, ignored: 0, dead_lettered: 0, cancelled: 0 }, false],
])('a scope that was sent four events, of which %s', (_, counts, settled) => {
  expect(isSettled(state(counts), 4)).toBe(settled)
})

test('a turn that is still in flight is waited for', () => {
  const counts = { accepted: 1, completed: 1, ignored: 0, dead_lettered: 0, cancelled: 0 }
  expect(isSettled({ ...state(counts), turn: { turn_id: 't', since: '', events: 1 } }, 1)).toBe(false)
})
