import { expect, test } from 'vitest'
import { atOnce } from '../../../src/base/steps.ts'
import type { Agreement } from '../../../src/contract/agreement.ts'
import type { EpisodeAct } from '../../../src/features/learning/episode.ts'
import { classesOf } from '../../../src/features/learning/reflexes/classes.ts'
import type { HeldOut } from '../../../src/features/learning/reflexes/judge.ts'
import { reachOf } from '../../../src/features/learning/reflexes/reach.ts'
import { seededRandom } from '../../support/random.ts'
import { call, history } from './histories.ts'

const judgedAs = (n: number, agreed: number): HeldOut => ({ n, covered: agreed, agreed, hits: [0, 1], misses: [] })
type Mail = { type: string; line: string }

/** A row for each act, of which nine in ten decisions are taken rightly. */
function reached(decide: (index: number) => [Mail, EpisodeAct[]], agreement: Agreement, errors: number[] = []) {
  const episodes = history(1000, decide).map((one) => ({ ...one, usage: { ...one.usage, cost_usd: 0.25 } }))
  const classes = atOnce(classesOf(episodes))
  const byClass = classes.classes.map((_, own) => {
    const n = classes.of.filter((one) => one === own).length
    return judgedAs(n, Math.round(n * 0.9))
  })
  const rows = atOnce(reachOf(episodes, { classes, byClass, errors: classes.classes.map((_, own) => errors[own] ?? null), agreement }))
  return Object.fromEntries(rows.map((row) => [row.act, row]))
}
const mail = (line: string): Mail => ({ type: 'mail', line })

test('a teacher who contradicts itself on equal events leaves any method with a share that it cannot take', () => {
  const random = seededRandom(5)
  const rows = reached((index) => [mail(`subject ${index % 40}`), call(random() < 0.1 ? 'other' : 'label', {})], 0.99)
  expect(rows['label']).toMatchObject({ bound: 0.99, error_by: 'repeats' })
  expect(rows['label']?.error).toBeGreaterThan(0.05)
  expect(rows['label']?.error).toBeLessThan(0.15)
  // (0.1 − 0.01) / (1 − 0.01) for a base error of a tenth.
  const { error, must_leave } = rows['label']!
  expect(must_leave).toBeCloseTo((error! - 0.01) / 0.99)
})

test('a teacher who never contradicts itself leaves nothing that must stay', () => {
  const rows = reached((index) => [mail(`subject ${index % 40}`), call(index % 2 === 0 ? 'label' : 'other', {})], 0.99)
  expect(rows['label']).toMatchObject({ error: 0, must_leave: 0, decisions: 500, decides: 0.9 })
})

test('where no events are equal, the error is that of what was learned, or is not known', () => {
  const decide = (index: number): [Mail, EpisodeAct[]] => [mail(`subject ${index}`), call('label', {})]
  expect(reached(decide, 0.95, [0.2])['label']).toMatchObject({ error: 0.2, error_by: 'learned' })
  expect(reached(decide, 0.95, [0.2])['label']?.must_leave).toBeCloseTo(0.15 / 0.95)
  expect(reached(decide, 0.95)['label']).toMatchObject({ error: null, error_by: null, must_leave: null })
})

test('a rare tool and a strict bound take more decisions, and what is never decided is never proven', () => {
  const decide = (index: number): [Mail, EpisodeAct[]] => [mail(`subject ${index}`), call(index % 20 === 0 ? 'refund' : 'label', {})]
  const needs = (agreement: Agreement, tool: string) => reached(decide, agreement)[tool]?.needs
  expect(needs(0.95, 'label')).toBe(Math.ceil(70 / (0.95 * 0.9)))
  expect(needs(0.95, 'refund')).toBeGreaterThan(1500)
  expect(needs({ default: 0.95, refund: 0.999 }, 'refund')).toBeGreaterThan(70_000)
  // Together with the frequent tool it takes the floor of 0.97 by itself, not 0.99.
  expect(needs(0.99, 'refund')).toBeLessThan(needs({ refund: 0.99 }, 'refund') ?? 0)
  const never = atOnce(
    reachOf(history(100, decide), {
      classes: atOnce(classesOf(history(100, decide))),
      byClass: [],
      errors: [],
      agreement: 0.95,
    }),
  )
  expect(never.map(({ needs: more }) => more)).toEqual(never.map(() => null))
})

test('says what the turns cost that it would have spared', () => {
  const rows = reached((index) => [mail(`subject ${index}`), call('label', {})], 0.99)
  // Two of them are listed as right.
  expect(rows['label']?.saves_usd).toBe(0.5)
})
