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

test.each([
  [3, 'missing from a decision on', true, String],
  [1, 'missing from no decision', false, String],
  [3, 'read from a text, and missing', true, (amount: number) => `${amount} EUR`],
] as const)('where %i decisions had no number it is %s, and nothing else counts as 0', async (without, _, isTaken, shown) => {
  const amountOf = (amount: number) => (shown === String ? amount : shown(amount))
  const decided = history(800, (index) => {
    const amount = drawn(index, 2)
    const isMissing = [50, 300, 700].slice(0, without).includes(index)
    const event = isMissing ? { type: 'refund' } : { type: 'refund', amount: amountOf(amount) }
    return [event, isMissing || amount < 500 ? call('approve', {}) : call('ask', {})]
  })
  const on = (amount?: string | number) =>
    actions(decided, episode(9000, { type: 'refund', ...(amount !== undefined && { amount }) }, []), BOUND)
  const approves = [expect.objectContaining({ tool: 'approve' })]
  expect(await on(amountOf(120))).toEqual(approves)
  expect(await on()).toEqual(isTaken ? approves : [])
  for (const other of ['n/a', '9,000 EUR', amountOf(-500)]) expect(await on(other)).toEqual([])
})

test('a number that no condition asks about has no guard where one decision lacked it', () => {
  const decided = history(120, (index) => {
    const isFree = index % 4 === 0
    const amount = index === 60 ? {} : { amount: 10 + drawn(index, 3) }
    return [{ type: 'refund', free: isFree, ...amount }, isFree ? call('approve', {}) : call('ask', {})]
  })
  const codeOf = (tool: string) => learnReflexes(decided).reflexes.find(({ decision }) => decision.includes(tool))?.code ?? ''
  expect([codeOf('approve').includes('context.event.amount'), codeOf('ask').includes('context.event.amount')]).toEqual([false, true])
})

test('a rule whose decisions have too few of each value is dropped', () => {
  const decided = history(900, (index) => {
    const kind = KINDS[drawn(index, 1) % 5] ?? ''
    const flag = drawn(index, 4) % 30 === 0
    return [{ type: 'spent', kind, flag, note: `n${drawn(index, 5)}` }, flag ? call('ask', {}) : call('approve', {})]
  })
  for (const { code } of learnReflexes(decided).reflexes) expect(code).not.toContain('[].includes(')
})
