import { expect, test } from 'vitest'
import { countAct, occasionOf } from '../../../src/evidence/draw.ts'
import { countValues, valueKey, valuesIn } from '../../../src/evidence/values.ts'
import type { AuditPace } from '../../../src/contract/reports/reflex-report.ts'

const event = (fields: object) => ({ id: 'e1', type: 'mail', timestamp: 'now', ...fields })
const valuesOf = (fields: object) => valuesIn(event(fields))

test('the values of an event are its words, what is true or false and single digits, by their places', () => {
  expect(valuesOf({ zone: 'North' })).toEqual(valuesOf({ zone: 'north' }))
  expect(valuesOf({ zone: 'north' })).not.toEqual(valuesOf({ from: 'north' }))
  expect(valuesOf({ zone: 'north west' })).toEqual(expect.arrayContaining(valuesOf({ zone: 'west' })))
  expect(valuesOf({ level: 3, loud: true, by: { role: 'nurse' }, tags: ['a', 'b'] })).toHaveLength(valuesOf({}).length + 5)
  expect(valuesOf({ weight: 30.5, age: 47 })).toEqual(valuesOf({}))
})

test('names of things with several digits are all the same value, and the id of an event is not one', () => {
  expect(valuesOf({ parcel: 'PCL-4001' })).toEqual(valuesOf({ parcel: 'PCL-4002' }))
  expect(valuesIn({ ...event({}), id: 'e2' })).toEqual(valuesOf({}))
})

test('space around words, what is null and whole numbers of two digits are no values', () => {
  expect(valuesOf({ zone: ' north, ' })).toEqual(valuesOf({ zone: 'north' }))
  expect(valuesOf({ zone: null })).toEqual(valuesOf({}))
  expect(valuesOf({ level: -9 })).toHaveLength(valuesOf({}).length + 1)
  expect(valuesOf({ level: 10 })).toEqual(valuesOf({}))
})

test('values are found three objects or lists deep', () => {
  expect(valuesOf({ a: { b: { c: { d: 'deep' } } } })).toHaveLength(valuesOf({}).length + 1)
  expect(valuesOf({ a: [[['deep']]] })).toHaveLength(valuesOf({}).length + 1)
  expect(valuesOf({ a: { b: { c: { d: { e: 'deeper' } } } }, b: [[[['deeper']]]] })).toEqual(valuesOf({}))
})

test('the first 500 characters of a text and the first 32 items of a list count', () => {
  const text = 'north '.repeat(83)
  expect(valuesOf({ text: `${text}ab` })).toEqual(expect.arrayContaining(valuesOf({ text: 'ab' })))
  expect(valuesOf({ text: `${text}  west` })).toEqual(valuesOf({ text: 'north' }))
  const tags = Array.from({ length: 31 }, () => 'a')
  expect(valuesOf({ tags: [...tags, 'b', 'c'] })).toEqual(valuesOf({ tags: ['a', 'b'] }))
})

test('the hash of a value is short and stays the same, since counts of it are stored', () => {
  expect(valueKey('zone', 'north')).toBe('y9yc')
  for (const word of ['a', 'north', 'a longer word']) expect(valueKey('zone', word)).toMatch(/^[0-9a-z]{1,4}$/)
})

test('what comes after as many values as are counted is not read', () => {
  const words = Array.from({ length: 40 }, (_, nth) => `word${'abcdefghij'[nth % 10]}${'klmn'[nth % 4]}${'xyz'[nth % 3]}`).join(' ')
  const unread = new Proxy({}, { ownKeys: () => expect.unreachable('it is read') })
  expect(valuesOf({ words, rest: unread })).toHaveLength(32)
  const as_many = Array.from('abcdefghijklmnopqrstuvwxyzàéîõüçñ')
    .slice(0, 32 - valuesOf({}).length)
    .join(' ')
  expect(valuesOf({ words: as_many, rest: unread })).toHaveLength(32)
})

test('values that come once are forgotten before those that come again', () => {
  let counts = countValues({}, ['north'], false)
  for (let at = 0; at < 1000; at += 1) counts = countValues(counts, [`once ${at}`, ...(at % 30 === 0 ? ['north'] : [])], false)
  expect(counts).toMatchObject({ north: 35, 'once 999': 1 })
  expect(Object.keys(counts)).toHaveLength(64)
})

test('a value that came often is not forgotten for many that come once', () => {
  let counts = countValues({ north: 5 }, ['west'], false)
  for (let at = 0; at < 200; at += 1) counts = countValues(counts, [`once ${at}`], false)
  expect(counts).toMatchObject({ north: 5, 'once 199': 1 })
  expect(counts).not.toHaveProperty('west')
})

test('up to 64 values are kept in the order in which they were seen last', () => {
  const values = Array.from({ length: 62 }, (_, nth) => `value ${nth}`)
  const counts = countValues({ often: 5, early: 1 }, values, false)
  expect(Object.keys(counts)).toEqual(['often', 'early', ...values])
})

/** The wrong acts until an audit sees one, where each act on one of eighteen zones is wrong. */
function wrongActs(life: number, knowsValues: boolean): number {
  let pace: AuditPace = { proof: 1, acts: 2000, unaudited: life % 20, judged: 2000 }
  let wrong = 0
  for (let at = -1000; ; at += 1) {
    const zone = (at * 7 + life) % 18
    const values = knowsValues ? [`zone ${zone}`] : []
    const occasion = occasionOf(pace, { event_id: `${life} ${at}`, salt: 's', share: 0.02, risk: 'outside', is_new: false, values })
    pace = { ...countAct(pace, occasion, values), judged: pace.acts }
    if (at < 0 || zone !== 5) continue
    if (occasion !== null) return wrong + 1
    wrong += 1
  }
}

test(
  'where the decision on one value changes, an audit sees it after at most 40 wrong acts, and 11 on average',
  { tags: ['simulation'] },
  () => {
    const lives = Array.from({ length: 300 }, (_, life) => life)
    const of = (knowsValues: boolean) => lives.map((life) => wrongActs(life, knowsValues))
    const mean = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0) / all.length
    const known = of(true)
    expect(Math.max(...known)).toBeLessThanOrEqual(40)
    expect(mean(known)).toBeLessThan(11)
    expect(mean(of(false))).toBeGreaterThan(12)
  },
)
