import { describe, expect, test } from 'vitest'
import type { Risk } from '../../../src/contract/risk.ts'
import { barFor, sprt, type Bar } from '../../../src/features/proof/evidence/sprt.ts'
import { seededRandom } from '../../support/random.ts'

/** The exact probability of `proven` for something that agrees with probability `rate`. */
function chanceOfProof(bar: Bar, rate: number): number {
  let proven = 0
  // Probabilities of the undecided states, by the number that disagreed.
  let open = new Map([[0, 1]])
  for (let compared = 1; compared <= 4000 && open.size > 0; compared += 1) {
    const next = new Map<number, number>()
    const reach = (disagreed: number, chance: number) => {
      const { verdict } = sprt(bar, { agreed: compared - disagreed, disagreed })
      if (verdict === 'proven') proven += chance
      if (verdict === 'open') next.set(disagreed, (next.get(disagreed) ?? 0) + chance)
    }
    for (const [disagreed, chance] of open) {
      reach(disagreed, chance * rate)
      if (rate < 1) reach(disagreed + 1, chance * (1 - rate))
    }
    open = next
  }
  return proven
}

const risks: [Risk, number][] = [
  ['inside', 72],
  ['outside', 118],
  ['final', 118],
]

describe.each(risks)('the sequential test for a risk %s', (risk, clean) => {
  const bar = barFor(risk)

  test(`takes ${clean} agreements where nothing disagrees`, () => {
    expect(sprt(bar, { agreed: 0, disagreed: 0 })).toEqual({ verdict: 'open', needed: clean })
    expect(sprt(bar, { agreed: clean - 1, disagreed: 0 })).toEqual({ verdict: 'open', needed: 1 })
    expect(sprt(bar, { agreed: clean, disagreed: 0 })).toEqual({ verdict: 'proven', needed: 0 })
  })

  test('refutes two disagreements at the start', () => {
    expect(sprt(bar, { agreed: 1, disagreed: 2 }).verdict).toBe('refuted')
  })

  test('proves what is poor at most 5 % of the time, and what is good at least 95 %, looked at after each comparison', () => {
    expect(chanceOfProof(bar, bar.poor)).toBeLessThanOrEqual(0.05)
    expect(chanceOfProof(bar, bar.poor - 0.03)).toBeLessThan(0.01)
    expect(chanceOfProof(bar, bar.good)).toBeGreaterThanOrEqual(0.95)
  })

  test('keeps its promise in 1,000 simulated trials', { tags: ['simulation'] }, () => {
    const random = seededRandom(7)
    let proven = 0
    for (let trial = 0; trial < 1000; trial += 1) {
      const compared = { agreed: 0, disagreed: 0 }
      while (sprt(bar, compared).verdict === 'open') compared[random() < bar.poor ? 'agreed' : 'disagreed'] += 1
      if (sprt(bar, compared).verdict === 'proven') proven += 1
    }
    // Three standard errors of 1,000 draws above 5 %.
    expect(proven).toBeLessThanOrEqual(71)
    expect(proven).toBeGreaterThan(20)
  })
})

describe('the test for a risk inside, looked at after each comparison', () => {
  const bar = barFor('inside')

  test.each([
    [0.9, 0.002],
    [0.93, 0.02],
    [0.95, 0.05],
  ])('proves what agrees %d of the time with a chance of at most %d', (rate, most) => {
    expect(chanceOfProof(bar, rate)).toBeLessThanOrEqual(most)
  })

  test.each([0.99, 0.995, 1])('proves what agrees %d of the time with a chance of at least 0.947', (rate) => {
    expect(chanceOfProof(bar, rate)).toBeGreaterThanOrEqual(0.947)
  })
})

test('a teacher that contradicts itself lowers the bar, and no further than chance agreement allows', () => {
  const noise = 0.03
  const bar = barFor('inside', { noise })
  const observed = (agreement: number) => agreement * (1 - noise) + (1 - agreement) * noise
  expect(chanceOfProof(bar, observed(0.95))).toBeLessThanOrEqual(0.0527)
  expect(chanceOfProof(bar, observed(0.99))).toBeGreaterThanOrEqual(0.95)
  expect(chanceOfProof(barFor('inside'), observed(0.99))).toBeLessThan(0.4)
})

test('a bar that already is as high as the setting demands stays', () => {
  expect(barFor('inside', { least: 0.95 })).toEqual(barFor('inside'))
  expect(barFor('inside', { least: 0.951 })).toMatchObject({ poor: 0.951, accept: 20 })
})
