import { expect, test } from 'vitest'
import type { Stratum } from '../../../src/contract/certificate.ts'
import { freshStratum } from '../../../src/evidence/strata.ts'
import { inProof, isWorthProof, offerRefusal, type Offer } from '../../../src/features/learning/run/policy.ts'

const offer = (forecast: number): Offer => ({ strata: ['tool a'], reflexes: [], forecast })

test.each([
  ['leaves one that takes as many', 0.8, 0.8, true, 'a version that would take 80 % is being proved'],
  ['leaves one that takes more', 0.8, 0.86, true, 'a version that would take 86 % is being proved'],
  ['replaces one that takes less', 0.8, 0.77, true, null],
  ['leaves one with comparisons of its own, if nothing was foreseen', 0.8, 0.6, false, 'a version that would take 60 % is being proved'],
  ['replaces that, too, if it takes much more', 0.8, 0.54, false, null],
])('a later version %s', (_, forecast, known, foreseen, reason) => {
  expect(offerRefusal(offer(forecast), { known: [known], foreseen })?.split('; ')[1] ?? null).toBe(reason)
})

test('a later version replaces one that has an act refuted, however much that would take', () => {
  const stratum = (act: string, more: Partial<Stratum> = {}): Stratum => ({
    ...freshStratum({ event_type: 'mail', risk: 'outside', act }, { seq: 1, at: 1 }),
    ...more,
  })
  const forecastOf = (...strata: Stratum[]) => inProof({ forecast: 0.8 }, { strata }).forecast
  const refusal = (...strata: Stratum[]) => offerRefusal(offer(0.8), { known: [forecastOf(...strata)], foreseen: true })
  expect(refusal(stratum('refund'))).toContain('is being proved')
  expect(refusal(stratum('refund'), stratum('nothing', { state: 'refuted' }))).toBeNull()
  // A person's rejection holds for later versions, too.
  expect(refusal(stratum('refund'), stratum('nothing', { state: 'refuted', person: 'ann' }))).toContain('is being proved')
  expect(inProof({ forecast: 0.8 }, undefined).forecast).toBe(0.8)
})

test('what would take little is not proved', () => {
  expect(offerRefusal(offer(0.1), { known: [], foreseen: true })).toBe('it would take only 10 % of such decisions')
  expect(offerRefusal(offer(0.2), { known: [], foreseen: true })).toBeNull()
})

test('a first version waits for 85 % of the decisions, or is content with 30 % of many', () => {
  expect([isWorthProof(0.84, 1000), isWorthProof(0.86, 300), isWorthProof(0.31, 1500), isWorthProof(0.29, 5000)]).toEqual([
    false,
    true,
    true,
    false,
  ])
})
