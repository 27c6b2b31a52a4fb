import { expect, test } from 'vitest'
import { arrivalOf, MOST_INTERRUPTS, noTurn, type OverlapSituation, type ReactionDecision } from '../../../src/reflexes/decide.ts'

const waiting: Pick<ReactionDecision, 'perceived' | 'acted'> = { perceived: 'joined', acted: null }
const fired = (action_type: string, reused = false) =>
  ({ perceived: 'joined', acted: { action: { action_type }, reused } }) as unknown as Pick<ReactionDecision, 'perceived' | 'acted'>
const debounce: OverlapSituation['overlap'] = { debounce: { quiet_ms: 5, max_ms: 9 } }
const meeting = (overlap: OverlapSituation['overlap'], more: Partial<OverlapSituation> = {}): OverlapSituation => ({
  overlap,
  has_trigger: true,
  in_flight: { turn_id: 'a', interrupts: 0 },
  ...more,
})
const alone = { in_flight: null }

test('an event meets the turn in flight as the overlap policy says', () => {
  expect(arrivalOf(waiting, meeting('drop'))).toBe('dropped')
  expect(arrivalOf(waiting, meeting('interrupt'))).toBe('interrupts')
  expect(arrivalOf(waiting, meeting('queue'))).toBe('waits')
  expect(arrivalOf(waiting, meeting(debounce))).toBe('waits')
})

test('without a turn in flight, only the debounce delays the next', () => {
  expect(arrivalOf(waiting, meeting('drop', alone))).toBe('starts')
  expect(arrivalOf(waiting, meeting('interrupt', alone))).toBe('starts')
  expect(arrivalOf(waiting, meeting(debounce, alone))).toBe('debounced')
})

test('turns are interrupted a limited number of times in a row', () => {
  const in_flight = { turn_id: 'a', interrupts: MOST_INTERRUPTS }
  expect(arrivalOf(waiting, meeting('interrupt', { in_flight }))).toBe('waits')
})

test('an escalated event waits for the turn in flight and ignores the debounce', () => {
  const escalated = fired('escalate')
  expect(arrivalOf(escalated, meeting('drop'))).toBe('waits')
  expect(arrivalOf(escalated, meeting('interrupt'))).toBe('waits')
  expect(arrivalOf(escalated, meeting(debounce, alone))).toBe('starts')
})

test('events that need no turn meet none', () => {
  expect(arrivalOf(fired('reply'), meeting('drop'))).toBeNull()
  expect(arrivalOf(fired('escalate', true), meeting('drop'))).toBeNull()
  expect(arrivalOf({ ...waiting, perceived: 'ignored' }, meeting('drop'))).toBeNull()
  expect(arrivalOf(waiting, meeting('queue', { has_trigger: false }))).toBe('no_trigger')
})

test('an event that no turn will consider has the reason', () => {
  expect(noTurn('no_trigger', 'chat')).toBe('agent chat has no trigger')
  expect(noTurn('dropped', 'chat')).toContain('drop')
  expect(noTurn('waits', 'chat')).toBeNull()
  expect(noTurn(null, 'chat')).toBeNull()
})
