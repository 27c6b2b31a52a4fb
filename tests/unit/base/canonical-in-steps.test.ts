import { expect, test } from 'vitest'
import { canonicalInSteps, canonicalJson } from '../../../src/base/json.ts'
import { atOnce } from '../../../src/base/steps.ts'

const large = { b: Array.from({ length: 500 }, (_, index) => ({ z: index, a: ['x'.repeat(1000)] })), a: { y: null, x: undefined }, c: [] }

test('canonical JSON in steps is the same text', () => {
  for (const value of [large, [large, 1, 'two'], null, 'text', {}, []]) expect(atOnce(canonicalInSteps(value))).toBe(canonicalJson(value))
})

test('canonical JSON of a large value takes several steps', () => {
  expect([...canonicalInSteps(large)].length).toBeGreaterThan(10)
  expect([...canonicalInSteps({ small: 1 })]).toEqual([])
})
