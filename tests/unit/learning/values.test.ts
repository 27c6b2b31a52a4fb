import { expect, test } from 'vitest'
import { fnv1a } from '../../../src/base/fnv1a.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { call, episode, history } from './histories.ts'
import { actions } from './run-learned.ts'

const drawn = (index: number, at: number): number => (fnv1a(`${at} of ${index}`) >>> 11) % 1000
const KINDS = ['meal', 'taxi', 'hotel', 'phone', 'other']
const spent = (index: number, kind = KINDS[drawn(index, 1) % 5] ?? '') => ({ type: 'spent', kind, amount: 1 + (drawn(index, 2) % 119) })
/** True if it is above the limit of its kind: one has its own. */
const isOver = ({ kind, amount }: { kind: string; amount: number }): boolean => amount > (kind === 'other' ? 40 : 60)
const taught = history(1200, (index) => {
  // A kind that was seen twice teaches nothing.
  const event = spent(index, index === 30 || index === 60 ? 'gift' : undefined)
  return [event, isOver(event) ? call('ask', {}) : call('approve', {})]
})
const BOUND = { agreement: 0.95 }
const approved = async (kind: string, amount: number): Promise<boolean> =>
  (await actions(taught, episode(9000, { type: 'spent', kind, amount }, []), BOUND)).some((one) => JSON.stringify(one).includes('approve'))

test('a rule leaves out one value of a field, and takes none of the others but those that its decisions had', async () => {
  const approve = learnReflexes(taught, BOUND).reflexes.find(({ by, decision }) => by === 'rules' && decision.includes('approve'))
  expect(approve?.code).toContain("['hotel', 'meal', 'phone', 'taxi'].includes(context.event.kind)")
  expect(await Promise.all([approved('meal', 50), approved('hotel', 41), approved('other', 20)])).toEqual([true, true, true])
  expect(await Promise.all([approved('other', 50), approved('gift', 50), approved('car', 50)])).toEqual([false, false, false])
})

test('a rule counts no field whose values are many as known', () => {
  const many = history(600, (index) => {
    const event = spent(index, `k${String.fromCodePoint(97 + (drawn(index, 1) % 20))}`)
    return [event, isOver({ ...event, kind: event.kind === 'ka' ? 'other' : '' }) ? call('ask', {}) : call('approve', {})]
  })
  for (const { code } of learnReflexes(many).reflexes) expect(code).not.toMatch(/if \(\[.*\.includes\(context\.event\.kind\)/)
})
