import { expect, test } from 'vitest'
import { equivalenceOf } from '../../../src/features/replay/contract/replay.ts'
import { Comparison } from '../../../src/features/replay/report.ts'

const at = (span_id: string) => ({ span_id })

test('a decision that cannot be made again counts as unknown, and as neither same nor changed', () => {
  const comparison = new Comparison()
  comparison.compare(at('a'), 'turn', { recorded: 1, replayed: 1 })
  comparison.compare(at('b'), 'turn', { recorded: 1, replayed: 2 })
  comparison.cannot(at('c'), 'turn', 'the recording lacks it')
  expect(comparison).toMatchObject({ compared: 2, changed: 1, decisions: { turn: { same: 1, changed: 1, unknown: 1 } } })
})

test('a replay is equivalent only where nothing changed and nothing is unknown', () => {
  expect(equivalenceOf({ changed: 0, unknown: 0 })).toBe(true)
  expect(equivalenceOf({ changed: 0, unknown: 1 })).toBeNull()
  expect(equivalenceOf({ changed: 1, unknown: 1 })).toBe(false)
})
