import { expect, test } from 'vitest'
import type { TreeColumn } from '../../../../src/features/learning/reflexes/scorer/numbers.ts'
import { linesOf } from '../../../../src/features/learning/reflexes/scorer/tree-words.ts'
import { NO_TREES, type Trees } from '../../../../src/features/learning/reflexes/scorer/trees.ts'

const columns: TreeColumn[] = [
  { source: { is: 'number', path: ['event', 'amount'] }, at: [50, 90] },
  { source: { is: 'category', path: ['event', 'country'] }, at: ['de', 'fr'] },
]
const amount = (bin: number) => ({ column: 0, bin, equal: false })
const country = (bin: number) => ({ column: 1, bin, equal: true })
const trees: Trees = {
  ...NO_TREES,
  columns,
  shares: [0.75, 0.25],
  taught: columns.map(() => ({ missing: true, other: false })),
  trees: [
    { own: 0, root: { ...amount(2), fails: { points: -60 }, passes: { ...country(1), fails: { points: -20 }, passes: { points: 100 } } } },
    { own: 0, root: { ...amount(2), fails: { points: -10 }, passes: { ...amount(3), fails: { points: 4 }, passes: { points: 30 } } } },
  ],
}

test('few leaves are printed as rules, with the points of equal ones added up and small ones left out', () => {
  expect(linesOf(trees, ['refund'])).toEqual([
    "amount >= 50 and country = 'de': 'refund' +100",
    "amount < 50: 'refund' -70",
    "amount >= 90: 'refund' +30",
    "amount >= 50 and country != 'de': 'refund' -20",
  ])
})

test('many leaves are printed as the shares of what they ask about', () => {
  const many = Array.from({ length: 20 }, (_, own) => ({ own, root: { ...amount(2), fails: { points: -60 }, passes: { points: 60 } } }))
  expect(linesOf({ ...trees, trees: many }, [])).toEqual(['amount: 75 %', 'country: 25 %'])
})

test('a name or a value from an event ends no comment', () => {
  const hostile: TreeColumn[] = [{ source: { is: 'category', path: ['event', 'a\nb */'] }, at: ["'\u2028*/\n"] }]
  const root = { ...country(1), column: 0, fails: { points: -60 }, passes: { points: 60 } }
  const text = linesOf({ ...NO_TREES, columns: hostile, trees: [{ own: 0, root }] }, ['x\n*/']).join('')
  expect(text).not.toMatch(/[\n\u2028]|\*\//)
})
