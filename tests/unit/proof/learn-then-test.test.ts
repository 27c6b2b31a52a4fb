import { describe, expect, test } from 'vitest'
import { clopperPearsonHigh } from '../../../src/evidence/binomial.ts'
import { learnThenTest, thresholdGrid, type Scored } from '../../../src/evidence/learn-then-test.ts'
import { seededRandom } from '../../support/random.ts'

const grid = Array.from({ length: 50 }, (_, step) => 1 - (step + 1) / 50)
/** Disagreement of the decisions at or above a threshold grows from 0 to 30 % as it falls. */
const wrongAt = (score: number): number => 0.3 * (1 - score) ** 2
const sample = (random: () => number, n: number, wrong = wrongAt): Scored[] =>
  Array.from({ length: n }, () => {
    const score = random()
    return { score, agreed: random() >= wrong(score) }
  })
/** The mean of `wrongAt` over the scores from the threshold to 1. */
const riskAbove = (threshold: number): number => 0.1 * (1 - threshold) ** 2

describe('a threshold by Learn-then-Test', () => {
  const levels = { alpha: 0.02, delta: 0.1, grid }

  test('covers more than it promises too much in at most 10 % of 1,000 simulated samples', { tags: ['simulation'] }, () => {
    const random = seededRandom(3)
    const found = Array.from({ length: 1000 }, () => learnThenTest(sample(random, 3000), levels))
    const wrong = found.filter((one) => one !== null && riskAbove(one.threshold) > levels.alpha)
    expect(wrong.length).toBeLessThanOrEqual(100)
    // An oracle would cover 45 %.
    const covered = found.map((one) => (one ? 1 - one.threshold : 0))
    expect(covered.reduce((sum, share) => sum + share, 0) / found.length).toBeGreaterThan(0.25)
  })

  test('is refused to a learner that is wrong everywhere', { tags: ['simulation'] }, () => {
    const random = seededRandom(5)
    const found = Array.from({ length: 1000 }, () =>
      learnThenTest(
        sample(random, 300, () => levels.alpha + 1e-6),
        levels,
      ),
    )
    expect(found.filter((one) => one !== null).length).toBeLessThanOrEqual(100)
  })

  test('is refused to a coin flip and to a sample too small to judge', () => {
    expect(
      learnThenTest(
        sample(seededRandom(1), 5000, () => 0.5),
        levels,
      ),
    ).toBeNull()
    expect(
      learnThenTest(
        sample(seededRandom(1), 100, () => 0),
        levels,
      ),
    ).toBeNull()
    expect(learnThenTest([], levels)).toBeNull()
  })

  test.each([
    [58, null],
    [59, 0],
  ])('of %d agreements at one level of 5 %% is %s', (n, threshold) => {
    const scored = Array.from({ length: n }, () => ({ score: 1, agreed: true }))
    expect(learnThenTest(scored, { alpha: 0.05, delta: 0.1, grid: [0] })?.threshold ?? null).toBe(threshold)
  })

  test('covers everything where nothing disagrees', () => {
    expect(
      learnThenTest(
        sample(seededRandom(1), 400, () => 0),
        levels,
      ),
    ).toMatchObject({ threshold: 0, disagreed: 0, n: 400 })
  })

  test('survives wrong decisions at the strict end', () => {
    const scored = sample(seededRandom(1), 20_000, (score) => (score > 0.985 ? 0.3 : 0.002))
    expect(learnThenTest(scored, levels)).toMatchObject({ procedure: 'bonferroni' })
  })
})

describe('the sequence from strict to lax', () => {
  const of = (score: number, agreed: number, wrong = 0): Scored[] => [
    ...Array.from({ length: agreed }, () => ({ score, agreed: true })),
    ...Array.from({ length: wrong }, () => ({ score, agreed: false })),
  ]
  const levels = { alpha: 0.05, delta: 0.1 }

  test('stops at its first failure, in whatever order the grid is', () => {
    const scored = [...of(0.9, 60), ...of(0.8, 0, 20)]
    for (const grid of [
      [0.9, 0.8],
      [0.8, 0.9, 0.8],
    ]) {
      const found = learnThenTest(scored, { ...levels, grid })
      expect(found).toMatchObject({ threshold: 0.9, n: 60, disagreed: 0, procedure: 'fixed_sequence' })
      expect(found?.high).toBeCloseTo(1 - 0.05 ** (1 / 60), 9)
    }
  })

  test('begins where enough is covered for a verdict, and continues while it passes', () => {
    expect(learnThenTest([...of(0.95, 30), ...of(0.9, 30)], { ...levels, grid: [0.95, 0.9] })).toMatchObject({ threshold: 0.9, n: 60 })
    expect(learnThenTest([...of(0.9, 60), ...of(0.8, 5)], { ...levels, grid: [0.9, 0.8] })).toMatchObject({ threshold: 0.8, n: 65 })
    expect(learnThenTest([...of(0.9, 30), ...of(0.8, 28)], { ...levels, grid: [0.9, 0.8] })).toBeNull()
  })

  test('finds what the correction would find, too, and begins no earlier than a verdict can be', () => {
    expect(learnThenTest(of(0.9, 100), { ...levels, grid: [0.9] })).toMatchObject({ threshold: 0.9, procedure: 'fixed_sequence' })
    const scored = [...of(0.9, 40), ...of(0.8, 20), ...of(0.7, 40)]
    expect(learnThenTest(scored, { ...levels, grid: [0.9, 0.8, 0.7] })).toMatchObject({ threshold: 0.7, procedure: 'fixed_sequence' })
  })

  test('keeps the lowest threshold although a stricter one passes the correction, too', () => {
    const scored = [...of(0.9, 100), ...of(0.8, 4, 1)]
    expect(learnThenTest(scored, { ...levels, grid: [0.9, 0.8] })).toMatchObject({ threshold: 0.8, n: 105, disagreed: 1 })
  })

  test('leaves a level of coverage to the correction, which pays for twelve', () => {
    const grid = Array.from({ length: 24 }, (_, step) => 24 - step)
    const found = learnThenTest([...of(24, 90, 10), ...of(23, 1000), ...of(22, 0, 1000)], { ...levels, grid })
    expect(found).toMatchObject({ threshold: 23, n: 1100, disagreed: 10, procedure: 'bonferroni' })
    expect(found?.high).toBeCloseTo(clopperPearsonHigh({ n: 1100, k: 10 }, 0.05 / 12), 12)
    const all = grid.flatMap((score) => (score === 24 ? of(score, 20, 10) : of(score, 30)))
    expect(learnThenTest(all, { ...levels, grid })).toMatchObject({ threshold: 1, n: 720, disagreed: 10, procedure: 'bonferroni' })
  })
})

test('a grid has even steps of coverage, each threshold once', () => {
  expect(thresholdGrid([0.1, 0.9, 0.5, 0.5, 0.3], 5)).toEqual([0.9, 0.5, 0.3, 0.1])
  expect(thresholdGrid([])).toEqual([])
})
