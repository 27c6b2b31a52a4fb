import { describe, expect, test } from 'vitest'
import type { Action } from '../../../src/contract/action.ts'
import type { Certificate } from '../../../src/contract/certificate.ts'
import type { Risk } from '../../../src/contract/risk.ts'
import { emptyMetrics, type ReflexMetrics } from '../../../src/reflexes/metrics.ts'
import { allow, openCertificate, proceed, reject } from '../../../src/evidence/certificate.ts'
import {
  actsOf,
  agreementsNeeded,
  countTrial,
  demotionOf,
  emptyTrial,
  promotable as promotableBy,
  riskOf,
  shouldDemote,
  wayToAct,
} from '../../../src/reflexes/promotion.ts'

const passed = (error = 0, limit = 0, invalid_action = 0) => ({ null: 0, error, limit, invalid_action })
type Compared = { event_type?: string; act?: string; risk?: Risk; agreed: number; disagreed?: number }
const teacher = { by: 'model', agent_version: '1', model: 'm', prompt_hash: '', tools_hash: '', settings_revision: 0 } as const

/** A certificate of these comparisons, in this order. */
function certificate(...all: Compared[]): Certificate {
  let certificate = openCertificate(
    { kind: 'reflex', id: 'r', version: '1', hash: '' },
    { teacher, at: 0, least: { agreement: 0.95, support: 0 } },
  )
  for (const { event_type = 'note', risk = 'inside', act = 'reply', agreed, disagreed = 0 } of all)
    for (let n = 0; n < agreed + disagreed; n += 1)
      certificate = proceed(certificate, {
        kind: 'compared',
        event_type,
        risk,
        act,
        agreed: n < agreed,
        seq: n,
        at: 0,
        teacher,
      }).certificate
  return certificate
}
/** Counts as they are: a test stops at its verdict. */
const counted = (certificate: Certificate, n: number, k: number): Certificate => ({
  ...certificate,
  strata: certificate.strata.map((stratum) => ({ ...stratum, n, k })),
})
type Shown = Partial<ReflexMetrics> & { compared?: Certificate[] }
const promotable = ({ compared = [certificate({ agreed: 0, disagreed: 1 }, { agreed: 200 })], ...fields }: Shown = {}) =>
  promotableBy(compared, { ...emptyMetrics(), runs: 1000, ...fields }, 1000)
const shadow = (agreed: number, disagreed: number) => [counted(certificate({ agreed: 1 }), agreed + disagreed, agreed)]

test('the way to its first act is said to whoever wrote a version', () => {
  const way = (state: 'active' | 'shadow' | 'draft', by_agent: boolean) => wayToAct({ id: 'greet', version: 2, state, by_agent })
  expect(way('active', true)).toBeNull()
  expect(way('shadow', true)).toMatch(
    /agreed with the actual ones: each act 70 times, and all acts of the same risk together 358 times.*greet@2\/state \{"state": "active", "force": true\}/,
  )
  expect(way('shadow', false)).toMatch(/^It does not act, and is compared .*\{"state": "active"\}/)
  expect(way('draft', false)).toMatch(/^It does not act\. A person /)
})

describe('a reflex in shadow', () => {
  test.each<[string, Shown]>([
    ['just enough', {}],
    ['errors in 1 % of its runs', { passed: passed(4, 3, 3) }],
    ['only agreements', { compared: shadow(agreementsNeeded(0.95), 0) }],
    ['many fires of which 1 % disagreed', { compared: shadow(990, 10) }],
    ['enough in two scopes together', { compared: [...shadow(40, 0), ...shadow(32, 0)] }],
  ])('may act with %s', (_what, fields) => {
    expect(promotable(fields)).toEqual({ ok: true })
  })

  test.each<[string, Shown, RegExp[]]>([
    [
      'one agreement too few',
      { compared: shadow(agreementsNeeded(0.95) - 1, 0) },
      [/^69 of 69 decisions for reply on note agreed: at least 1 more must agree/],
    ],
    ['no comparison', { compared: [] }, [/^0 of 0 .* 70 more/]],
    ['90 % agreement', { compared: shadow(90, 10) }, [/^90 of 100 .* too few to prove it/]],
    ['errors and a poor start', { compared: shadow(0, 2), passed: passed(500) }, [/0 of 2/, /500 of/]],
    ['errors', { passed: passed(11) }, [/11 of 1000/]],
    ['limits', { passed: passed(0, 11) }, [/11 of 1000/]],
    ['invalid actions', { passed: passed(0, 0, 11) }, [/11 of 1000/]],
    [
      'a disagreement after its proof',
      { compared: [certificate({ agreed: 100, disagreed: 1 })] },
      [/^for reply on note 1 of 31 .* 20 more must/],
    ],
    ['a lapsed certificate', { compared: shadow(100, 0).map((one) => ({ ...one, lapsed: { at: 1, reason: '' } })) }, [/^0 of 0/]],
    [
      'a certificate of an earlier procedure',
      { compared: shadow(100, 0).map((one) => ({ ...one, procedure: 'sprt' as never })) },
      [/^0 of 0/],
    ],
    ['an expired certificate', { compared: shadow(100, 0).map((one) => ({ ...one, expires_at: 1000 })) }, [/^0 of 0/]],
  ])('may not with %s', (_what, fields, missing) => {
    expect(promotable(fields)).toEqual({ ok: false, missing: missing.map((pattern) => expect.stringMatching(pattern)) })
  })

  test('may not where it never ran', () => {
    expect(promotableBy([], emptyMetrics(), 1000)).toMatchObject({ ok: false })
  })
})

describe('the strata of a reflex in shadow', () => {
  test('are proved one by one: a frequent event type does not prove a rare one', () => {
    const frequent = { event_type: 'frequent', agreed: 5000 }
    const few = certificate(frequent, { event_type: 'rare', agreed: 3 })
    expect(promotable({ compared: [few] })).toEqual({
      ok: false,
      missing: [expect.stringMatching(/^3 of 3 .* rare agreed: at least 67 more/)],
    })
    expect(promotable({ compared: [certificate(frequent, { event_type: 'rare', agreed: 70 })] })).toEqual({ ok: true })
  })

  test('are proved act by act: a frequent tool does not prove a rare one', () => {
    const frequent = { act: 'label', agreed: 5000 }
    expect(promotable({ compared: [certificate(frequent, { act: 'refund', agreed: 3 })] })).toEqual({
      ok: false,
      missing: [expect.stringMatching(/^3 of 3 decisions for refund on note agreed: at least 67 more/)],
    })
  })

  test('are refused where a person rejected them in any scope, and not where one allowed them', () => {
    const where = { event_type: 'note', risk: 'inside', act: 'reply' } as const
    const proven = certificate({ agreed: 200 })
    const [allowed, rejected] = [allow(proven, where, 'ann'), reject(proven, where, 'ann')]
    expect(promotable({ compared: [allowed] })).toEqual({ ok: true })
    const strata = proven.strata.flatMap((one) => [one, { ...one, act: '*', state: 'refuted' as const, person: 'ann' }])
    expect(promotable({ compared: [{ ...proven, strata }] })).toMatchObject({ ok: false })
    for (const other of [proven, allowed, certificate({ agreed: 0, disagreed: 2 })])
      for (const compared of [
        [rejected, other],
        [other, rejected],
      ])
        expect(promotable({ compared })).toEqual({ ok: false, missing: [expect.stringMatching(/that is too few to prove it$/)] })
  })

  test('wait for a person where an action can be neither undone nor repeated', () => {
    const missing = [expect.stringMatching(/neither undone nor repeated: a person must activate it/)]
    expect(promotable({ compared: [certificate({ event_type: 'a', risk: 'final', agreed: 1000 })] })).toEqual({ ok: false, missing })
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

test('the newest active version acts', () => {
  const versions = [
    { version: 1, state: 'active' },
    { version: 3, state: 'active' },
    { version: 2, state: 'active' },
    { version: 4, state: 'shadow' },
  ] as const
  expect([actsOf(versions), actsOf(versions.slice(3)), actsOf([])]).toEqual([3, null, null])
})

describe('a trial', () => {
  test('counts each run, and the limits in a row', () => {
    const trial = (['limit', 'limit', 'null', 'fired', 'error', 'limit', 'invalid_action', 'limit'] as const).reduce(
      (before, reason) => countTrial(before, { reason }),
      emptyTrial('active'),
    )
    expect(trial).toEqual({
      runs: 8,
      passed: { null: 1, error: 1, limit: 4, invalid_action: 1 },
      acted: 0,
      failed: 0,
      overruled: 0,
      state: 'active',
      limits: 1,
    })
    expect(countTrial(trial, { reason: 'fired' })).toEqual({ ...trial, runs: 9, limits: 0 })
  })

  test('ends in a draft after three limits in a row, whatever the state, and in shadow for what an active one may not do', () => {
    const limits = (count: number) => ({ ...emptyTrial('active'), limits: count })
    const draft = { to: 'draft', reason: 'it was stopped at its limit 3 times in a row' }
    expect([demotionOf(limits(3), 'shadow'), demotionOf(limits(4), 'active'), demotionOf(limits(2), 'active')]).toEqual([
      draft,
      draft,
      null,
    ])
    const failing = { ...emptyTrial('active'), acted: 3, failed: 3 }
    const shadow = { to: 'shadow', reason: 'the effects of 3 of 3 actions failed' }
    expect([demotionOf(failing, 'active'), demotionOf(failing, 'shadow')]).toEqual([shadow, null])
  })
})
