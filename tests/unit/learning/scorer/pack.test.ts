import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MOST_WEIGHTS, packScorer, pointsSource, unpackScorer } from '../../../../src/features/learning/reflexes/scorer/pack.ts'
import { piecesOf, piecesSource } from '../../../../src/features/learning/reflexes/scorer/pieces.ts'
import { type PiecePoints, pointsOf, type Scorer } from '../../../../src/features/learning/reflexes/scorer/scorer.ts'
import { QuickJsSandbox } from '../../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../../src/reflexes/reflex-context.ts'
import { assertProperty } from '../../../support/property.ts'
import { sandboxModule } from '../../../support/sandbox-module.ts'
import { anySaw, sawWith } from './saws.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const REFLEX = `
function reflex(context) {
  const points = pointsOf(context)
  return points === null ? null : { points }
}`
/** The code that was written for these weights, run with those. */
const runWith = (written: string, given: string, saw: object) =>
  sandbox.run(
    {
      hash: given,
      code: [`const weights = ${JSON.stringify(given)}`, pointsSource(written), piecesSource({ recent: true }), REFLEX].join('\n'),
    },
    { ...sampleContext, ...saw },
  )

const points = fc.integer({ min: -127, max: 127 }).filter((one) => one !== 0)
const someOf = (classes: number) =>
  fc.uniqueArray(fc.tuple(fc.nat(classes - 1), points), { selector: ([own]) => own, minLength: 1, maxLength: 20 })
/** A scorer that knows some pieces of the context, and others. */
const scorerFor = (known: readonly number[]): fc.Arbitrary<Scorer> =>
  fc.integer({ min: 2, max: 200 }).chain((classes) =>
    fc
      .record({
        bias: fc.array(fc.integer({ min: -30_000, max: 30_000 }), { minLength: classes, maxLength: classes }),
        pieces: fc.array(fc.tuple(fc.oneof(fc.constantFrom(...known), fc.nat(2 ** 32 - 1)), someOf(classes)), { maxLength: 60 }),
      })
      .map(({ bias, pieces }) => ({
        bias,
        pieces: new Map(pieces.map(([piece, own]) => [piece, own.toSorted(([one], [other]) => one - other)])),
      })),
  )
const cases = anySaw.chain((saw) => scorerFor([...piecesOf(saw)]).map((scorer) => ({ saw, scorer })))

describe('weights', () => {
  test('are read back as they were, and give the same points in the sandbox', () => {
    assertProperty(
      'learning/scorer/pack: points',
      fc.property(cases, ({ saw, scorer }) => {
        const weights = packScorer(scorer)
        expect(unpackScorer(weights)).toEqual(scorer)
        const expected = Array.from(pointsOf(scorer, { pieces: piecesOf(saw) }))
        expect(runWith(weights, weights, saw).value).toEqual({ points: expected })
      }),
    )
  })

  test('have codes of one byte, never 0, and the same ones each time', () => {
    const pieces = new Map(
      Array.from({ length: 5000 }, (_, index): [number, PiecePoints[]] => [
        Math.imul(index, 0x9e3779b1) >>> 0,
        [[index % 254, (index % 127) + 1]],
      ]),
    )
    const weights = packScorer({ bias: Array.from({ length: 254 }, () => 0), pieces })
    expect(Array.from(weights, (one) => one.charCodeAt(0)).filter((code) => code < 1 || code > 255)).toEqual([])
    expect(weights.length).toBeLessThanOrEqual(MOST_WEIGHTS)
    expect(packScorer({ bias: Array.from({ length: 254 }, () => 0), pieces: new Map([...pieces].toReversed()) })).toBe(weights)
  })

  test('that are too many are an error', () => {
    const own = Array.from({ length: 100 }, (_, at): PiecePoints => [at, 1])
    const pieces = new Map(Array.from({ length: 2000 }, (_, index) => [index, own]))
    expect(() => packScorer({ bias: Array.from({ length: 100 }, () => 0), pieces })).toThrow('262144 are allowed')
    expect(() => packScorer({ bias: Array.from({ length: 255 }, () => 0), pieces: new Map() })).toThrow('254 are allowed')
  })

  test('that are damaged are not read by the host, and end no run of the sandbox', () => {
    const saw = sawWith({ text: 'Where is my card?' })
    const pieces = new Map(Array.from(piecesOf(saw), (piece, index): [number, PiecePoints[]] => [piece, [[index % 3, 5]]]))
    const weights = packScorer({ bias: [0, 0, 0], pieces })
    assertProperty(
      'learning/scorer/pack: damage',
      fc.property(fc.nat(weights.length - 1), fc.integer({ min: 1, max: 255 }), (at, code) => {
        const damaged = weights.slice(0, at) + String.fromCharCode(code) + weights.slice(at + 1)
        fc.pre(damaged !== weights)
        expect(unpackScorer(damaged)).toBeNull()
        expect(runWith(weights, damaged, saw).reason).toMatch(/^(?:fired|null)$/)
      }),
    )
  })

  test('of another form leave the event to others', () => {
    const saw = sawWith({ text: 'Where is my card?' })
    const weights = packScorer({ bias: [0, 9], pieces: new Map() })
    for (const other of [
      '',
      'x',
      weights.slice(0, -1),
      `${weights}x`,
      `X${weights.slice(1)}`,
      packScorer({ bias: [0, 9, 3], pieces: new Map() }),
    ]) {
      expect(runWith(weights, other, saw)).toMatchObject({ reason: 'null' })
      expect(other.length === weights.length + 3 || unpackScorer(other) === null).toBe(true)
    }
    expect(runWith(weights, weights, saw).value).toEqual({ points: [0, 9] })
  })
})
