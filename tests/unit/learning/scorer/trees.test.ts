import { expect, test } from 'vitest'
import { drawOf } from '../../../../bench/learning/draw.ts'
import { atOnce } from '../../../../src/base/steps.ts'
import type { JsonFields } from '../../../../src/base/json.ts'
import type { Saw } from '../../../../src/features/learning/episode.ts'
import {
  addTreePoints,
  binsIn,
  fitTrees,
  type FittedTrees,
  quantisedTrees,
} from '../../../../src/features/learning/reflexes/scorer/trees.ts'
import { sampleContext } from '../../../../src/reflexes/reflex-context.ts'

const saw = (fields: JsonFields): Saw => {
  const event = { ...sampleContext.event, content: undefined, ...fields } as unknown as Saw['event']
  return { event, recent_events: [event], window: sampleContext.window, scratch: {}, recent_actions: [] }
}
const draw = (index: number, name: string): number => drawOf(`${name} ${index}`)
const rows = (count: number, row: (index: number) => JsonFields): JsonFields[] => Array.from({ length: count }, (_, index) => row(index))

function taught(fields: readonly JsonFields[], labelOf: (one: JsonFields, index: number) => number, classes = 2): FittedTrees {
  return atOnce(fitTrees({ saws: fields.map(saw), classOf: fields.map(labelOf), classes }))
}

/** The class with the most points; null if the trees say nothing about the event. */
function decided(trees: FittedTrees, fields: JsonFields): number | null {
  const bins = binsIn(trees, saw(fields))
  const points = [...trees.bias]
  if (bins === null) return null
  addTreePoints(trees, bins, points)
  return points.indexOf(Math.max(...points))
}

const orders = rows(800, (index) => ({
  amount: Math.floor(draw(index, 'amount') * 10_000) / 100,
  country: ['de', 'fr', 'it'][index % 3] ?? '',
  limit: 20 + Math.floor(draw(index, 'limit') * 80),
  serial: 5000 + index * 3,
}))
const isLarge = ({ amount, country }: JsonFields): number => (Number(amount) >= 50 && country === 'de' ? 1 : 0)

test('trees find an amount and a country together, and tell the threshold within what was taught', () => {
  const trees = taught(orders, isLarge)
  const asked = [
    { amount: 80, country: 'de' },
    { amount: 51, country: 'de' },
    { amount: 49, country: 'de' },
    { amount: 80, country: 'fr' },
  ]
  expect(asked.map((fields) => decided(trees, { ...fields, limit: 50, serial: 9000 }))).toEqual([1, 1, 0, 0])
})

test('trees find a ratio of two numbers', () => {
  const trees = taught(orders, ({ amount, limit }) => (Number(amount) > Number(limit) ? 1 : 0))
  expect(trees.columns[trees.shares.indexOf(Math.max(...trees.shares))]?.source.is).toMatch(/ratio|difference/)
  expect(decided(trees, { amount: 62, limit: 60, country: 'fr', serial: 9000 })).toBe(1)
  expect(decided(trees, { amount: 58, limit: 60, country: 'fr', serial: 9000 })).toBe(0)
})

test('trees find the hour of a time', () => {
  const calls = rows(600, (index) => ({ at: new Date(Math.floor(draw(index, 'at') * 1e9) * 1000).toISOString() }))
  const hour = ({ at }: JsonFields): number => new Date(at as string).getUTCHours()
  const trees = taught(calls, (call) => (hour(call) >= 9 && hour(call) < 17 ? 1 : 0))
  expect(trees.columns.map(({ source }) => source.is)).toEqual(['hour'])
  expect(decided(trees, { at: '2026-11-21T09:00:00.000Z' })).toBe(1)
  expect(decided(trees, { at: '2026-11-21T17:00:00.000Z' })).toBe(0)
})

test('decisions by chance have no trees', () => {
  const trees = taught(orders, (_, index) => (draw(index, 'label') < 0.3 ? 1 : 0))
  expect(trees.trees).toEqual([])
})

test('a decision that no class stands for has the most points for its events, so that none acts', () => {
  const trees = taught(orders, (one) => (isLarge(one) === 1 ? -1 : 0), 1)
  expect(trees.bias).toHaveLength(2)
  expect(decided(trees, { amount: 80, country: 'de', limit: 50, serial: 9000 })).toBe(1)
  expect(decided(trees, { amount: 80, country: 'fr', limit: 50, serial: 9000 })).toBe(0)
})

test('trees say nothing about an event that lacks a field, has a value or a number that was not taught', () => {
  const trees = taught(orders, isLarge)
  const known = { amount: 80, country: 'de', limit: 50, serial: 9000 }
  expect(decided(trees, known)).toBe(1)
  expect(decided(trees, { ...known, country: 'es' })).toBeNull()
  expect(decided(trees, { ...known, amount: 100_000 })).toBeNull()
  expect(decided(trees, { ...known, amount: -1 })).toBeNull()
  expect(decided(trees, { country: 'de', limit: 50, serial: 9000 })).toBeNull()
})

test('a field that was missing before may be missing, which trees may ask about', () => {
  const some = orders.map(({ amount, country }, index) => (index % 4 === 0 ? { country } : { amount, country })) as JsonFields[]
  const trees = taught(some, (one) => ('amount' in one ? 0 : 1))
  expect(decided(trees, { country: 'fr' })).toBe(1)
  expect(decided(trees, { country: 'fr', amount: 3 })).toBe(0)
})

test('trees do not ask about a number that only grows', () => {
  const trees = taught(orders, (one, index) => (index >= 600 ? 1 : isLarge(one)))
  expect(trees.columns.flatMap(({ source }) => [source.path, 'other' in source ? source.other : []]).flat()).not.toContain('serial')
})

test('the same episodes have the same trees', () => {
  expect(taught(orders, isLarge)).toEqual(taught(structuredClone(orders), isLarge))
})

test('quantised trees have integer points that fit into a character', () => {
  const { trees } = quantisedTrees(taught(orders, isLarge), 500)
  const points = [...JSON.stringify(trees).matchAll(/"points":(-?[\d.]+)/g)].map(([, text]) => Number(text))
  expect(points.filter((one) => !Number.isInteger(one) || Math.abs(one) > 127)).toEqual([])
  expect(points.length).toBeGreaterThan(10)
})
