import { describe, expect, test } from 'vitest'
import type { Action } from '../../../src/contract/action.ts'
import type { Risk } from '../../../src/contract/reports/certificate.ts'
import { emptyMetrics, mergeMetrics, type ReflexMetrics } from '../../../src/reflexes/metrics.ts'
import { agreementsNeeded, countComparison, promotable, refuted, riskOf, shouldDemote } from '../../../src/reflexes/promotion.ts'

const shadow = (agreed: number, disagreed: number) => ({ runs: 1000, fired: agreed + disagreed, agreed, disagreed, undecided: 0 })
const passed = (error = 0, limit = 0, invalid_action = 0) => ({ null: 0, error, limit, invalid_action })
const proven = ({ shadow: counts = shadow(200, 1), ...fields }: Partial<ReflexMetrics> = {}): ReflexMetrics => ({
  ...emptyMetrics(),
  runs: 1000,
  shadow: counts,
  strata: { note: { inside: { agreed: counts.agreed, disagreed: counts.disagreed } } },
  ...fields,
})

describe('a reflex in shadow', () => {
  test.each<[string, Partial<ReflexMetrics>]>([
    ['just enough', {}],
    ['errors in 1 % of its runs', { passed: passed(4, 3, 3) }],
    ['only agreements', { shadow: shadow(agreementsNeeded('inside'), 0) }],
    ['many fires of which 1 % disagreed', { shadow: shadow(990, 10) }],
  ])('may act with %s', (_what, fields) => {
    expect(promotable(proven(fields))).toEqual({ ok: true })
  })

  test.each<[string, Partial<ReflexMetrics>, RegExp[]]>([
    ['one agreement too few', { shadow: shadow(agreementsNeeded('inside') - 1, 0) }, [/^71 of 71 compared fires .* 1 more must agree/]],
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

describe('the strata of a reflex in shadow', () => {
  const compared = (event_type: string, risk: Risk, agreed: number, disagreed = 0, strata: ReflexMetrics['strata'] = {}) => {
    let counted = strata
    for (let n = 0; n < agreed + disagreed; n += 1) counted = countComparison(counted, { event_type, risk, agreed: n < agreed })
    return counted
  }

  test('are proved one by one: a frequent event type does not prove a rare one', () => {
    const strata = compared('rare', 'inside', 3, 0, compared('frequent', 'inside', 5000))
    expect(promotable(proven({ strata }))).toEqual({ ok: false, missing: [expect.stringMatching(/^3 of 3 .* 69 more .* rare$/)] })
    expect(promotable(proven({ strata: compared('rare', 'inside', 69, 0, strata) }))).toEqual({ ok: true })
  })

  test('are refuted one by one', () => {
    expect(refuted(compared('rare', 'inside', 0, 2, compared('frequent', 'inside', 5000)))).toBe(true)
    expect(refuted(compared('frequent', 'inside', 5000, 2))).toBe(false)
  })

  test('need more agreements where an action reaches outside', () => {
    expect([agreementsNeeded('inside'), agreementsNeeded('outside')]).toEqual([72, 118])
    expect(promotable(proven({ strata: compared('a', 'outside', 117) })).ok).toBe(false)
    expect(promotable(proven({ strata: compared('a', 'outside', 118) })).ok).toBe(true)
  })

  test('wait for a person where an action can be neither undone nor repeated', () => {
    const missing = [expect.stringMatching(/neither undone nor repeated: a person must activate it/)]
    expect(promotable(proven({ strata: compared('a', 'final', 100_000) }))).toEqual({ ok: false, missing })
  })

  test('are at most 51, whatever types a sender invents', () => {
    let strata: ReflexMetrics['strata'] = {}
    for (const type of ['__proto__', 'constructor', ...Array.from({ length: 200 }, (_, n) => `t${n}`)])
      strata = compared(type, 'inside', 1, 0, strata)
    expect(Object.keys(strata)).toHaveLength(51)
    expect(strata['*']).toEqual({ inside: { agreed: 152, disagreed: 0 } })
    expect(Object.getOwnPropertyDescriptor(strata, '__proto__')?.value).toEqual({ inside: { agreed: 1, disagreed: 0 } })
    expect(Object.keys(mergeMetrics([proven({ strata }), proven({ strata })]).strata)).toEqual(Object.keys(strata))
  })

  test.each<[Action, { keyed: boolean; undoable: boolean }, Risk]>([
    [{ action_type: 'reply', content: 'a' }, { keyed: false, undoable: false }, 'inside'],
    [{ action_type: 'ignore', reason: 'nothing to do' }, { keyed: false, undoable: false }, 'inside'],
    [{ action_type: 'set_scratch', key: 'a', value: 1 }, { keyed: false, undoable: false }, 'inside'],
    [{ action_type: 'emit_event', event: { type: 'a' } }, { keyed: false, undoable: false }, 'outside'],
    [{ action_type: 'run_skill', skill_id: 'a', inputs: {} }, { keyed: false, undoable: false }, 'outside'],
    [{ action_type: 'call_tool', tool: 'a', args: {} }, { keyed: true, undoable: false }, 'outside'],
    [{ action_type: 'call_tool', tool: 'a', args: {} }, { keyed: false, undoable: true }, 'outside'],
    [{ action_type: 'call_tool', tool: 'a', args: {} }, { keyed: false, undoable: false }, 'final'],
  ])('count %j with %j as a risk %s', (action, call, risk) => {
    expect(riskOf(action, call)).toBe(risk)
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
