import { expect, test } from 'vitest'
import { lineOf, measureFigure, type Bench, type Figure } from '../../../bench/figure.ts'

const rate = { name: 'rate', what: 'events', unit: 'events/s', target: { at_least: 1 }, worst: 0.5 } as const
const time = { name: 'time', what: 'an answer', unit: 'ms', target: { at_most: 2 }, worst: 6 } as const
const of = (ours: number, bare: number) => ({ ours: [ours], bare: [bare], before: [] })

test('CI accepts a missed target, and no ratio that is worse than the worst one', () => {
  expect(lineOf(rate, of(60, 100))).toMatchObject({ ok: false, acceptable: true })
  expect(lineOf(rate, of(40, 100))).toMatchObject({ ok: false, acceptable: false })
  expect(lineOf(time, of(5, 1))).toMatchObject({ ok: false, acceptable: true })
  expect(lineOf(time, of(7, 1))).toMatchObject({ ok: false, acceptable: false })
})

test('a figure that cannot be measured is not acceptable, if it has a worst ratio', async () => {
  const fails = () => Promise.reject(new Error('no server'))
  const run = { before: null, bench: { progress: () => {} } as unknown as Bench, runs: 1 }
  const figure: Figure = { ...time, ours: fails }
  expect(await measureFigure(figure, run)).toMatchObject({ acceptable: false, error: 'no server' })
})
