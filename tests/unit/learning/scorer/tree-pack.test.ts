import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Saw } from '../../../../src/features/learning/episode.ts'
import type { TreeNode } from '../../../../src/features/learning/reflexes/scorer/grow.ts'
import type { TreeColumn } from '../../../../src/features/learning/reflexes/scorer/numbers.ts'
import { readingSources } from '../../../../src/features/learning/reflexes/facts/readings.ts'
import { packTrees, treesSource } from '../../../../src/features/learning/reflexes/scorer/tree-pack.ts'
import { addTreePoints, binsIn, NO_TREES, type Trees } from '../../../../src/features/learning/reflexes/scorer/trees.ts'
import { QuickJsSandbox } from '../../../../src/reflexes/quickjs-sandbox.ts'
import { type ReflexContext, sampleContext } from '../../../../src/reflexes/reflex-context.ts'
import { runReflex } from '../../../../src/reflexes/run-reflex.ts'
import { sandboxModule } from '../../../support/sandbox-module.ts'
import { assertProperty } from '../../../support/property.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const CLASSES = 3

/** The points of a context in the sandbox; null if the trees say nothing about it. */
function inSandbox(trees: Trees, context: ReflexContext): unknown {
  const before = 'abc'
  const source = treesSource(trees, before.length)
  const code = `const weights = ${JSON.stringify(before + packTrees(trees))}
function reflex(context) {
  const points = [0, 0, 0]
  const known = addTrees(context, points)
  return { action_type: 'set_scratch', key: 'p', value: known ? points : null }
}
${[source, ...readingSources(source)].join('\n')}`
  const { action, error } = runReflex(sandbox, { code, hash: code }, context)
  if (action?.action_type !== 'set_scratch') throw new Error(error ?? 'no action')
  return action.value
}

function here(trees: Trees, context: Saw): number[] | null {
  const bins = binsIn(trees, context)
  const points = Array.from({ length: CLASSES }, () => 0)
  if (bins !== null) addTreePoints(trees, bins, points)
  return bins === null ? null : points
}

const sources: TreeColumn['source'][] = [
  { is: 'number', path: ['event', 'amount'] },
  { is: 'number', path: ['event', 'geo', 'lat'] },
  { is: 'number', path: ['event', 'items', 'length'] },
  { is: 'number', path: ['event', 'geo', '0'] },
  { is: 'number', path: ['repeats', 'country'] },
  { is: 'number', path: ['amount', 'event', 'at'] },
  { is: 'number', path: ['sum', 'event', 'items', 'geo'] },
  { is: 'number', path: ['most', 'event', 'geo', 'items', '0'] },
  { is: 'number', path: ['least', 'event', 'items', 'geo'] },
  { is: 'hour', path: ['event', 'at'] },
  { is: 'ratio', path: ['event', 'amount'], other: ['event', 'limit'] },
  { is: 'difference', path: ['event', 'amount'], other: ['event', 'limit'] },
]
const numbers = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.double({ min: -3, max: 3, noNaN: true }))
const values = fc.constantFrom<string | boolean | null>('de', 'fr', '2.5', "o'`${1}", '', true, false, null)
const columns = fc.oneof(
  fc.record({
    source: fc.constantFrom(...sources),
    at: fc.uniqueArray(numbers, { maxLength: 6 }).map((at) => at.toSorted((one, other) => one - other)),
  }),
  fc.record({
    source: fc.constantFrom<TreeColumn['source']>(
      { is: 'category', path: ['event', 'country'] },
      { is: 'category', path: ['event', 'geo', 'length'] },
      { is: 'category', path: ['before'] },
    ),
    at: fc.uniqueArray(values, { maxLength: 5 }),
  }),
)

const rootOf = (asked: readonly TreeColumn[]): fc.Arbitrary<TreeNode> => {
  const leaves = fc.record({ points: fc.integer({ min: -127, max: 127 }) })
  const tests = fc.nat(asked.length - 1).chain((column) => {
    const { source, at } = asked[column] as TreeColumn
    const equal = source.is === 'category'
    return fc.record({
      column: fc.constant(column),
      equal: fc.constant(equal),
      bin: fc.integer({ min: equal ? 0 : 1, max: at.length + 1 }),
    })
  })
  const grown = (depth: number): fc.Arbitrary<TreeNode> =>
    depth === 0
      ? leaves
      : fc.oneof(
          leaves,
          fc.tuple(tests, grown(depth - 1), grown(depth - 1)).map(([asking, fails, passes]) => ({ ...asking, fails, passes })),
        )
  return grown(4)
}
const someTrees: fc.Arbitrary<Trees> = fc.array(columns, { minLength: 1, maxLength: 6 }).chain((asked) =>
  fc.record({
    columns: fc.constant(asked),
    trees: fc.array(fc.record({ own: fc.nat(CLASSES - 1), root: rootOf(asked) }), { maxLength: 8 }),
    shares: fc.constant(asked.map(() => 1)),
    taught: fc.tuple(...asked.map(() => fc.record({ missing: fc.boolean(), other: fc.boolean() }))),
    spans: fc.oneof(fc.constant([]), fc.constant([{ path: ['event', 'amount'], span: [-2.5, 2.5] as const }])),
  }),
)
const part = fc.oneof(numbers, values, fc.constantFrom('2026-11-21T05:00:00.000Z', '2026-11-21 23:59', 'abc', '3', [], [1, 2], {}))
const items = fc.array(fc.oneof(part, fc.record({ geo: part, '0': part }, { requiredKeys: [] })), { maxLength: 4 })
const fields = fc.record(
  {
    amount: part,
    limit: part,
    country: part,
    at: part,
    type: fc.constantFrom('de', 'fr', sampleContext.event.type),
    items: fc.oneof(part, items),
    geo: fc.oneof(part, fc.record({ lat: part, length: part, '0': part, items }, { requiredKeys: [] })),
  },
  { requiredKeys: [] },
)

test('trees give the same points here and in the sandbox, to any context', () => {
  assertProperty(
    'learning/scorer/tree-pack',
    fc.property(someTrees, fields, fields, (trees, now, before) => {
      const event = { ...sampleContext.event, ...now }
      const context = { ...sampleContext, event, recent_events: [{ ...sampleContext.event, ...before }, event] }
      expect(inSandbox(trees, context)).toEqual(here(trees, context))
    }),
    { numRuns: 300 },
  )
})

test('the packed trees have no character that is 0 or above 255', () => {
  const values = Array.from({ length: 62 }, (_, value) => `v${value}`)
  const columns = Array.from({ length: 200 }, (): TreeColumn => ({ source: { is: 'category', path: ['event', 'country'] }, at: values }))
  const root: TreeNode = { column: 199, bin: 63, equal: true, fails: { points: -127 }, passes: { points: 127 } }
  const packed = packTrees({ ...NO_TREES, columns, trees: [{ own: 59, root }] })
  expect(Array.from(packed, (character) => character.charCodeAt(0))).toEqual([61, 3, 53, 51, 1, 2, 1, 1, 1, 255, 1])
})
