import { describe, expect, test } from 'vitest'
import { emptyMetrics, type ReflexMetrics } from '../../../src/reflexes/metrics.ts'
import { AGREEMENTS_NEEDED, promotable, proofOf, shouldDemote } from '../../../src/reflexes/promotion.ts'

const shadow = (agreed: number, disagreed: number) => ({ runs: 1000, fired: agreed + disagreed, agreed, disagreed, undecided: 0 })
const passed = (error = 0, limit = 0, invalid_action = 0) => ({ null: 0, error, limit, invalid_action })
const proven = (fields: Partial<ReflexMetrics> = {}): ReflexMetrics => ({
  ...emptyMetrics(),
  runs: 1000,
  shadow: shadow(200, 1),
  ...fields,
})

describe('a reflex in shadow', () => {
  test.each<[string, Partial<ReflexMetrics>]>([
    ['just enough', {}],
    ['errors in 1 % of its runs', { passed: passed(4, 3, 3) }],
    ['only agreements', { shadow: shadow(AGREEMENTS_NEEDED, 0) }],
    ['many fires of which 1 % disagreed', { shadow: shadow(990, 10) }],
  ])('may act with %s', (_what, fields) => {
    expect(promotable(proven(fields))).toEqual({ ok: true })
  })

  test.each<[string, Partial<ReflexMetrics>, RegExp[]]>([
    ['one agreement too few', { shadow: shadow(AGREEMENTS_NEEDED - 1, 0) }, [/^71 of 71 compared fires .* 1 more must agree/]],
    ['no comparison', { shadow: { ...shadow(0, 0), undecided: 500 } }, [/^0 of 0 .* 72 more/]],
    ['95 % agreement', { shadow: shadow(95, 5) }, [/^95 of 100 .* too few to expect 99 %/]],
    ['errors and a poor start', { shadow: shadow(0, 2), passed: passed(500) }, [/0 of 2/, /500 of/]],
    ['errors', { passed: passed(11) }, [/11 of 1000/]],
    ['limits', { passed: passed(0, 11) }, [/11 of 1000/]],
    ['invalid actions', { passed: passed(0, 0, 11) }, [/11 of 1000/]],
  ])('may not with %s', (_what, fields, missing) => {
    expect(promotable(proven(fields))).toEqual({ ok: false, missing: missing.map((pattern) => expect.stringMatching(pattern)) })
  })

  test('may not where it never ran', () => {
    expect(promotable(emptyMetrics())).toMatchObject({ ok: false })
  })
})

/** The exact probability of promotion for a reflex that agrees with probability `rate`. */
function chanceOfPromotion(rate: number): number {
  let promoted = 0
  // Probabilities of the undecided states after so many comparisons, by the number that disagreed.
  let open = new Map([[0, 1]])
  for (let compared = 1; compared <= 2000 && open.size > 0; compared += 1) {
    const next = new Map<number, number>()
    const reach = (disagreed: number, chance: number) => {
      const { verdict } = proofOf({ agreed: compared - disagreed, disagreed })
      if (verdict === 'proven') promoted += chance
      if (verdict === 'open') next.set(disagreed, (next.get(disagreed) ?? 0) + chance)
    }
    for (const [disagreed, chance] of open) {
      reach(disagreed, chance * rate)
      if (rate < 1) reach(disagreed + 1, chance * (1 - rate))
    }
    open = next
  }
  return promoted
}

describe('the sequential test, looked at after each comparison', () => {
  // Wald's bound for error rates of 5 %: 0.05 / 0.95.
  test.each([
    [0.9, 0.002],
    [0.93, 0.02],
    [0.95, 0.0527],
  ])('a reflex that agrees %d of the time is promoted with a chance of at most %d', (rate, most) => {
    expect(chanceOfPromotion(rate)).toBeLessThanOrEqual(most)
  })

  test.each([0.99, 0.995, 1])('a reflex that agrees %d of the time is promoted with a chance of at least 0.947', (rate) => {
    expect(chanceOfPromotion(rate)).toBeGreaterThanOrEqual(0.947)
  })
})

describe('an active reflex', () => {
  const acting = (fields: Partial<ReflexMetrics>) => shouldDemote({ ...emptyMetrics(), runs: 100, acted: 100, ...fields })

  test.each<[string, Partial<ReflexMetrics>]>([
    ['nothing wrong', {}],
    ['few failed runs', { runs: 4, passed: passed(2, 1, 1) }],
    ['failed runs among many', { runs: 100, passed: passed(10, 5, 4) }],
    ['few failed effects', { acted: 2, failed: 2 }],
    ['failed effects among many', { failed: 19 }],
    ['one overruled action', { acted: 1, overruled: 1 }],
    ['overruled actions among many', { overruled: 9 }],
  ])('continues with %s', (_what, fields) => {
    expect(acting(fields)).toBeNull()
  })

  test.each<[string, Partial<ReflexMetrics>, RegExp]>([
    ['failed runs', { runs: 25, passed: passed(2, 2, 1) }, /^5 of 25 runs/],
    ['failed effects', { acted: 15, failed: 3 }, /3 of 15 actions failed/],
    ['overruled actions', { acted: 20, overruled: 2 }, /2 of 20 actions were overruled/],
  ])('is taken back for %s', (_what, fields, reason) => {
    expect(acting(fields)).toMatch(reason)
  })
})
