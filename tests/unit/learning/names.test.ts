import { expect, test } from 'vitest'
import { fnv1a } from '../../../src/base/fnv1a.ts'
import { leavesOf } from '../../../src/features/learning/reflexes/facts/facts.ts'
import { Names } from '../../../src/features/learning/reflexes/facts/names.ts'
import { learnReflexes } from '../../../src/features/learning/reflexes/learn.ts'
import { guardWords } from '../../../src/features/learning/reflexes/explain-words.ts'
import { call, episode, history } from './histories.ts'
import { actions } from './run-learned.ts'

const drawn = (index: number, at: number): number => (fnv1a(`${at} of ${index}`) >>> 11) % 1000
const one = <One>(of: readonly One[], index: number, at: number): One => of[drawn(index, at) % of.length] as One

/** A car that came back: late, or on time. */
const back = (index: number, vehicle: string) => ({ type: 'returned', due: drawn(index, 1), returned: drawn(index, 2), vehicle })
const plate = (index: number): string => `B-${one(['AX', 'KL', 'ZT'], index, 3)} ${drawn(index, 4)}`
const remark = (index: number): string => `${one(['clean', 'dirty', 'dented'], index, 3)} and ${one(['full', 'empty'], index, 4)} ${index}`
const lateOf = (vehicle: (index: number) => string, count = 800) =>
  history(count, (index) => {
    const event = back(index, vehicle(index))
    return [event, event.returned - event.due > 100 ? call('fine', { by: 1 }) : []]
  })

const late = (vehicle: string) => episode(9000, { type: 'returned', due: 300, returned: 700, vehicle }, [])
const differences = (code: string): number => code.match(/\n {2}if \(.*difference\(/g)?.length ?? 0
const finesOf = (vehicle: (index: number) => string) =>
  learnReflexes(lateOf(vehicle)).reflexes.filter(({ by, decision }) => by === 'rules' && decision.includes('fine'))

test('a rule on numbers needs no word of a field with names, and leaves an event whose name has another word', async () => {
  const [fine, ...others] = finesOf(plate)
  expect([differences(fine?.code ?? ''), others]).toEqual([1, []])
  expect(fine?.code).toContain("wordsOf(context.event.vehicle).some((word) => !['#', '^', 'ax', 'b', 'kl', 'zt'].includes(word))")
  const taught = lateOf(plate)
  for (const known of ['B-KL 123', 'b-zt 7']) expect(await actions(taught, late(known))).toMatchObject([{ tool: 'fine' }])
  for (const other of ['M-KL 123', 'B-KL 123 was stolen', 'B KL: no fine']) expect(await actions(taught, late(other))).toEqual([])
})

test.each([
  ['longer than 32 characters', (index: number) => `${remark(index)}, said the customer of it`],
  [
    'of words that come once',
    (index: number) => `${plate(index)} ${'abcdefghij'[index % 10]}${'klmnopqrst'[index % 9]}${index.toString(36).replaceAll(/\d/g, 'z')}`,
  ],
])('a field with texts %s has no names, so that each rule on a difference has a word', (_, vehicle) => {
  for (const { code } of finesOf(vehicle))
    for (const condition of code.match(/\n {2}if \(.*difference\(.*/g) ?? []) expect(condition).toContain('.includes(')
})

test('a field beyond the first forty with texts has no names', () => {
  const names = new Names()
  const fields = Object.fromEntries(Array.from({ length: 41 }, (_, nth) => [`n${nth + 10}`, 'db 7']))
  for (let index = 0; index < 3; index += 1) names.read(leavesOf(episode(index, { type: 'read', ...fields }, []).saw))
  const found = [...names.all().values()].map(({ path }) => path[1])
  expect([found.length, found.includes('n10'), found.includes('n50')]).toEqual([40, true, false])
})

test('the guard of names says which text it left', () => {
  const condition = "wordsOf(context.event.vehicle).some((word) => !['^', 'b'].includes(word))"
  expect(guardWords(condition, late('M-KL 1').saw)).toBe('vehicle is "M-KL 1", with a word that it was not taught with.')
})
