import { describe, expect, test } from 'vitest'
import { emptyMetrics, type ReflexMetrics } from '../../../src/reflexes/metrics.ts'
import { promotable, shouldDemote } from '../../../src/reflexes/promotion.ts'

const shadow = (agreed: number, disagreed: number) => ({ runs: 1000, fired: agreed + disagreed, agreed, disagreed, undecided: 0 })
const passed = (error = 0, limit = 0, invalid_action = 0) => ({ null: 0, error, limit, invalid_action })
const proven = (fields: Partial<ReflexMetrics> = {}): ReflexMetrics => ({ ...emptyMetrics(), runs: 1000, shadow: shadow(19, 1), ...fields })

describe('a reflex in shadow', () => {
  test.each<[string, Partial<ReflexMetrics>]>([
    ['just enough', {}],
    ['errors in 1 % of its runs', { passed: passed(4, 3, 3) }],
    ['more than enough', { shadow: shadow(1000, 50) }],
  ])('may act with %s', (_what, fields) => {
    expect(promotable(proven(fields))).toEqual({ ok: true })
  })

  test.each<[string, Partial<ReflexMetrics>, RegExp[]]>([
    ['too few fires', { shadow: shadow(19, 0) }, [/^19 of 20 fires/]],
    ['fires that nothing was decided about', { shadow: { ...shadow(0, 0), undecided: 500 } }, [/^0 of 20 fires/]],
    ['too little agreement', { shadow: shadow(94, 6) }, [/^an agreement of 95 % .* it is 94 %/]],
    ['almost enough agreement', { shadow: shadow(949, 51) }, [/it is 94.9 %/]],
    ['errors', { passed: passed(11) }, [/11 of 1000/]],
    ['limits', { passed: passed(0, 11) }, [/11 of 1000/]],
    ['invalid actions', { passed: passed(0, 0, 11) }, [/11 of 1000/]],
    ['nothing right', { shadow: shadow(0, 1), passed: passed(500) }, [/^1 of 20/, /it is 0 %/, /500 of 1000/]],
  ])('may not with %s', (_what, fields, missing) => {
    expect(promotable(proven(fields))).toEqual({ ok: false, missing: missing.map((pattern) => expect.stringMatching(pattern)) })
  })

  test('may not where it never ran', () => {
    expect(promotable(emptyMetrics())).toMatchObject({ ok: false })
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
  ])('goes on with %s', (_what, fields) => {
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
