import { describe, expect, test } from 'vitest'
import { binomialTail, clopperPearsonHigh, clopperPearsonLow, wilsonLow } from '../../../src/evidence/binomial.ts'
import { seededRandom } from '../../support/random.ts'

/** P(X <= k) with exact binomial coefficients. */
function tailByCounting(n: number, k: number, p: number): number {
  let coefficient = 1n
  let sum = 0
  for (let index = 0; index <= k; index += 1) {
    sum += Number(coefficient) * p ** index * (1 - p) ** (n - index)
    coefficient = (coefficient * BigInt(n - index)) / BigInt(index + 1)
  }
  return sum
}

describe('a binomial tail', () => {
  test.each([1, 2, 17, 60])('of %d draws is that of counting', (n) => {
    for (let k = 0; k <= n; k += 1) {
      for (const p of [0.001, 0.05, 0.5, 0.97]) expect(binomialTail({ n, k }, p)).toBeCloseTo(tailByCounting(n, k, p), 12)
    }
  })

  test('of many draws does not underflow', () => {
    expect(binomialTail({ n: 1_000_000, k: 500_500 }, 0.5)).toBeCloseTo(0.84, 2)
    expect(binomialTail({ n: 100_000, k: 10 }, 0.5)).toBe(0)
  })
})

describe('a Clopper-Pearson bound', () => {
  // The quantiles of the beta distribution by SciPy 1.16.
  test.each([
    [20, 19, 0.7838938357931526, 0.9974386212234697],
    [20, 0, 0, 0.13910834066826516],
    [300, 298, 0.9791637694729753, 0.9988141858890657],
    [1000, 17, 0.010860306012911823, 0.025390748776180874],
    [10_000, 120, 0.010265227024565882, 0.013950635558311471],
  ])('of %d draws with %d is that of the beta distribution', (n, k, low, high) => {
    expect(clopperPearsonLow({ n, k })).toBeCloseTo(low, 12)
    expect(clopperPearsonHigh({ n, k })).toBeCloseTo(high, 12)
  })

  test.each([
    [0.9, 29],
    [0.95, 59],
    [0.99, 299],
  ])('reaches %d at the earliest after %d agreements', (bound, clean) => {
    expect(clopperPearsonLow({ n: clean, k: clean })).toBeGreaterThanOrEqual(bound)
    expect(clopperPearsonLow({ n: clean - 1, k: clean - 1 })).toBeLessThan(bound)
  })

  test('says nothing without draws', () => {
    expect([clopperPearsonLow({ n: 0, k: 0 }), clopperPearsonHigh({ n: 0, k: 0 })]).toEqual([0, 1])
  })

  test('is above the true share in at most 5 % of 1,000 simulated samples', { tags: ['simulation'] }, () => {
    const random = seededRandom(11)
    const wrong = Array.from({ length: 1000 }, () => {
      const k = Array.from({ length: 200 }, random).filter((draw) => draw < 0.96).length
      return clopperPearsonLow({ n: 200, k }) > 0.96
    }).filter(Boolean)
    expect(wrong.length).toBeLessThanOrEqual(50)
  })
})

describe('a Wilson bound', () => {
  test.each([
    [0.9, 25],
    [0.95, 52],
    [0.99, 268],
  ])('reaches %d at the earliest after %d agreements', (bound, clean) => {
    expect(wilsonLow({ n: clean, k: clean })).toBeGreaterThanOrEqual(bound)
    expect(wilsonLow({ n: clean - 1, k: clean - 1 })).toBeLessThan(bound)
  })

  test('says nothing without draws', () => {
    expect(wilsonLow({ n: 0, k: 0 })).toBe(0)
  })
})

describe('at its ends', () => {
  test('a binomial tail is 1 from the number of draws on, and 0 below none', () => {
    expect([binomialTail({ n: 7, k: 7 }, 0.3), binomialTail({ n: 7, k: 8 }, 0.3), binomialTail({ n: 7, k: 7 }, 1)]).toEqual([1, 1, 1])
    expect(binomialTail({ n: 1000, k: 1000 }, 0.97)).toBe(1)
    expect([binomialTail({ n: 7, k: -1 }, 0.3), binomialTail({ n: 7, k: -1 }, 0)]).toEqual([0, 1])
  })

  test('of what never or always happens is 1 or 0', () => {
    expect([binomialTail({ n: 7, k: 3 }, 0), binomialTail({ n: 7, k: 3 }, -0.1)]).toEqual([1, 1])
    expect([binomialTail({ n: 7, k: 3 }, 1), binomialTail({ n: 7, k: 3 }, 1.1)]).toEqual([0, 0])
  })

  test('a Wilson bound is that of its formula, by another program', () => {
    expect(wilsonLow({ n: 100, k: 90 })).toBeCloseTo(0.8396444903889079, 12)
  })
})
