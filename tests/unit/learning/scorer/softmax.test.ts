import { describe, expect, test } from 'vitest'
import { atOnce } from '../../../../src/base/steps.ts'
import { packScorer } from '../../../../src/features/learning/reflexes/scorer/pack.ts'
import { piecesOf } from '../../../../src/features/learning/reflexes/scorer/pieces.ts'
import { leadOf, pointsOf } from '../../../../src/features/learning/reflexes/scorer/scorer.ts'
import { fitPieces, quantised } from '../../../../src/features/learning/reflexes/scorer/softmax.ts'
import { sawWith } from './saws.ts'

const TEXTS = ['my card is lost again', 'please send the money back', 'what is the weather like']
const rowOf = (text: string): Uint32Array => piecesOf(sawWith({ text }))
const rows = Array.from({ length: 60 }, (_, index) => rowOf(`${TEXTS[index % 3]} ${index % 7 === 0 ? 'now' : 'then'}`))
const lesson = { rows, classOf: Array.from({ length: 60 }, (_, index) => (index % 3 === 2 ? -1 : index % 3)), classes: 2 }

describe('a scorer of pieces', () => {
  test('gives the most points to the decision that was taken on such events', () => {
    const scorer = quantised(atOnce(fitPieces(lesson)), 32)
    const of = (text: string) => leadOf(pointsOf(scorer, { pieces: rowOf(text) }))
    expect(of('is my card lost').own).toBe(0)
    expect(of('send back my money').own).toBe(1)
    expect(of('is my card lost').margin).toBeGreaterThan(of('hello there').margin)
  })

  test('gives decisions that cannot be learned to a class of their own, the last', () => {
    const scorer = quantised(atOnce(fitPieces(lesson)), 32)
    expect(scorer.bias).toHaveLength(3)
    expect(leadOf(pointsOf(scorer, { pieces: rowOf('the weather like that') })).own).toBe(2)
  })

  test('has the same bytes for the same episodes, within its bound', () => {
    const bytes = 7500
    const packed = () => packScorer(quantised(atOnce(fitPieces({ ...lesson, bytes })), 32))
    expect(packed()).toBe(packed())
    expect(packed().length).toBeLessThanOrEqual(bytes)
    expect(packScorer(quantised(atOnce(fitPieces(lesson)), 32)).length).toBeGreaterThan(bytes)
  })

  test('has no points for pieces that too few senders said, or too few episodes have', () => {
    const odd = [...rows, rowOf('unheard'), rowOf('unheard')]
    const classOf = [...lesson.classOf, 0, 0]
    const { pieces } = atOnce(fitPieces({ ...lesson, rows: odd, classOf }))
    const others = new Set(rows.flatMap((row) => [...row]))
    for (const piece of rowOf('unheard')) expect(pieces.has(piece) && !others.has(piece)).toBe(false)
    expect(atOnce(fitPieces({ ...lesson, crowd: () => false })).pieces.size).toBe(0)
  })

  test('explains only what the rest of the scorer does not', () => {
    const base = (episode: number) => [episode % 3 === 0 ? 9 : 0, episode % 3 === 1 ? 9 : 0, episode % 3 === 2 ? 9 : 0]
    const most = (weights: ReturnType<typeof quantised>) =>
      Math.max(0, ...[...weights.pieces.values()].flat().map(([, points]) => Math.abs(points)))
    const alone = most(quantised(atOnce(fitPieces(lesson)), 100))
    expect(most(quantised(atOnce(fitPieces({ ...lesson, base })), 100))).toBeLessThan(alone / 10)
  })
})
