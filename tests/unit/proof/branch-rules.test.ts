import { describe, expect, test } from 'vitest'
import type { Action } from '../../../src/contract/action.ts'
import type { Stratum } from '../../../src/contract/certificate.ts'
import { allSignsOf, audited, signsOf, testWithRest, withAudit, withoutBranch, withoutOne } from '../../../src/evidence/branches.ts'
import { countAudit, emptyCusum, withoutDisagreement } from '../../../src/evidence/drift.ts'
import { barAt, weights } from '../../../src/evidence/e-process.ts'
import { valueKey } from '../../../src/evidence/values.ts'

const bar = barAt(0.99)
const action: Action = { action_type: 'call_tool', tool: 'restart', args: {} }
const eventWith = (fields: object) => ({ id: 'e', type: 'log.line', source: 'test', meta: {}, ...fields })
const place = { seq: 1, at: 1 }
const stratumWith = (more: Partial<Stratum>): Stratum => ({
  event_type: 'log.line',
  risk: 'outside',
  act: 'restart',
  state: 'proven',
  n: 100,
  k: 98,
  from: place,
  to: place,
  person: null,
  audits: emptyCusum(),
  drifts: 0,
  ...more,
})
const counted = (...agreements: boolean[]) => agreements.reduce((cusum, agreed) => countAudit(cusum, agreed, bar), emptyCusum())

describe('the signs of a decision', () => {
  const words = Array.from({ length: 60 }, (_, nth) => `w${'abcdefghijklmno'[nth % 15]}${'pqrs'[Math.floor(nth / 15)]}`).join(' ')

  test('that are counted are the first 48, while all of them stop an act', () => {
    const numbers = Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`n${nth}`, 20]))
    const event = eventWith({ line: words, more: words, ...numbers })
    expect(signsOf(event, action)).toHaveLength(48)
    expect(allSignsOf(event, action)?.length).toBeGreaterThan(120)
  })

  test('are unknown for an event of more than 32,000 characters', () => {
    const event = (length: number) => eventWith({ line: 'a'.repeat(length) })
    const most = 32_000 - JSON.stringify(event(0)).length
    expect(allSignsOf(event(most), action)).not.toBeNull()
    expect(allSignsOf(event(most + 1), action)).toBeNull()
  })

  test('have a number by its sign and its size, which stay the same, since counts of them are stored', () => {
    const signs = (at: number) => signsOf(eventWith({ at }), action)
    expect(signs(20)).toContain(valueKey('at', '13'))
    expect(signs(-20)).toContain(valueKey('at', '-13'))
    expect(signs(0)).toHaveLength(signs(20).length)
  })
})

describe('an audit', () => {
  test('that disagrees on a decision without values is of all decisions', () => {
    const after = audited(stratumWith({}), { agreed: false, signs: [] }, bar)
    expect([after.branch, after.audits]).toEqual([undefined, counted(false)])
  })

  test('that disagrees where all decisions are in doubt opens no branch', () => {
    const after = audited(stratumWith({ audits: counted(false) }), { agreed: false, signs: ['a'] }, bar)
    expect([after.branch, after.audits]).toEqual([undefined, counted(false, false)])
  })

  test('of a decision whose values are unknown is of the rest, beside a branch', () => {
    const before = audited(stratumWith({}), { agreed: false, signs: ['a'] }, bar)
    const after = audited(before, { agreed: true, signs: null }, bar)
    expect([after.branch, after.audits.audits]).toEqual([before.branch, 2])
  })

  test('that agrees does not close a branch that has drifted', () => {
    const branch = { signs: { a: 0 }, audits: { audits: 30, disagreed: 4, sum: 0, alarm: true }, since: 0 }
    const after = audited(
      stratumWith({ branch, audits: { ...emptyCusum(), audits: 30, disagreed: 4 } }),
      { agreed: true, signs: ['a'] },
      bar,
    )
    expect(after.branch?.audits).toMatchObject({ audits: 31, alarm: true })
  })

  test('counts in the test of all acts together with the audits of a branch that it closes', () => {
    const closes = { signs: {}, audits: { audits: 3, disagreed: 1, sum: 0, alarm: false }, since: 0 }
    const all = stratumWith({ audits: counted(false) })
    expect(withAudit(all, { agreed: true, closes }, bar).audits).toEqual(counted(false, false, true, true, true))
    expect(withAudit(all, { agreed: true, closes: undefined }, bar).audits).toEqual(counted(false, true))
  })
})

test('what agreed outside of a branch since it opened counts in the test by which all of the act is in doubt', () => {
  const branch = { signs: { a: 0 }, audits: counted(false, false), since: 10 }
  const audits = { ...emptyCusum(), audits: 17, disagreed: 2 }
  const tested = testWithRest(stratumWith({ branch, audits }), branch, bar)
  expect(tested).toEqual({ ...branch.audits, sum: branch.audits.sum - 5 * weights(bar).agreed })
})

describe('a disagreement that is taken back', () => {
  const branch = { signs: { a: 0 }, audits: counted(false, true), since: 0 }

  test('is of the rest if its values are unknown', () => {
    const before = stratumWith({ branch, audits: counted(false, false) })
    expect(withoutOne(before, null, bar)).toEqual({ ...before, audits: withoutDisagreement(before.audits, bar) })
  })

  test('and was the only one of its branch leaves the rest in its doubt', () => {
    const audits = { ...counted(false), audits: 3, disagreed: 2 }
    const after = withoutOne(stratumWith({ branch, audits }), ['a'], bar)
    expect([after.branch, after.audits]).toEqual([undefined, { ...audits, disagreed: 1 }])
  })
})

describe('a stratum without a branch that drifted', () => {
  const drifted = (signs: Record<string, number>, counts: Record<string, number> | undefined, more: Partial<Stratum> = {}) => {
    const branch = { signs, audits: { audits: 3, disagreed: 3, sum: 9, alarm: true }, since: 0 }
    const audits = { audits: 20, disagreed: 5, sum: 1, alarm: false }
    return withoutBranch(stratumWith({ branch, audits, ...(counts && { signs: counts }), ...more }))
  }
  const many = (length: number) => Object.fromEntries(Array.from({ length }, (_, nth) => [`s${nth}`, nth === 7 ? 5 : 9]))

  test('counts no decision that may have been of it', () => {
    // 100 compared, 20 audited; of 10 with the sign, 3 audits were of the branch.
    expect(drifted({ a: 0 }, { a: 10 })).toMatchObject({ n: 110, k: 106, left: ['a'], audits: { audits: 0, sum: 1 } })
    // Two decisions that agreed since are of the branch, too.
    expect(drifted({ a: 2 }, { a: 10 })).toMatchObject({ n: 112 })
  })

  test('leaves the most frequent of its signs, or the first', () => {
    expect(drifted({ a: 0, b: 0 }, { a: 10, b: 20 })?.left).toEqual(['b'])
    expect(drifted({ b: 0, a: 0 }, { a: 10, b: 20 })?.left).toEqual(['b'])
    expect(drifted({ b: 0, a: 0 }, { a: 10, b: 10 })?.left).toEqual(['b'])
  })

  test('takes a sign that is not counted for as frequent as the rarest, once not all are', () => {
    expect(drifted({ a: 0 }, many(63))?.n).toBe(120)
    expect(drifted({ a: 0 }, many(64))?.n).toBe(115)
  })

  test('leaves at most eight signs', () => {
    const left = Array.from({ length: 7 }, (_, nth) => `l${nth}`)
    expect(drifted({ a: 0 }, { a: 10 }, { left })?.left).toEqual([...left, 'a'])
    expect(drifted({ a: 0 }, { a: 10 }, { left: [...left, 'l7'] })).toBeNull()
  })

  test('is unknown where the signs of its decisions are, or where it has no branch', () => {
    expect(drifted({ a: 0 }, undefined)).toBeNull()
    expect(drifted({}, { a: 10 })).toBeNull()
    expect(withoutBranch(stratumWith({ signs: { a: 10 } }))).toBeNull()
  })
})
