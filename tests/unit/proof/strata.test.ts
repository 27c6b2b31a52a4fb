import { describe, expect, test } from 'vitest'
import type { Stratum } from '../../../src/contract/certificate.ts'
import { barAt } from '../../../src/evidence/e-process.ts'
import {
  barOf,
  counted,
  countsOfOthers,
  countsTogether,
  freshStratum,
  isProvenAlone,
  joins,
  MOST_TYPES,
  openText,
  provenBounds,
  REST,
  stratumOf,
  verdictIn,
} from '../../../src/evidence/strata.ts'

const place = { seq: 1, at: 2 }
const stratum = (act: string, n = 0, k = n, event_type = 'mail'): Stratum => ({
  ...freshStratum({ event_type, risk: 'inside', act }, place),
  n,
  k,
})
const judged = (agreement: number | { [name: string]: number }, ...strata: Stratum[]) => ({
  least: { agreement, support: 0 },
  noise: 0,
  strata,
})

describe('the stratum of an act', () => {
  const where = (event_type: string, act: string) => ({ event_type, risk: 'inside' as const, act, seq: 7, at: 8 })

  test('is the one that is known, or a new one from its first decision on', () => {
    const [label, refund] = [stratum('label', 5), stratum('refund', 3)]
    expect(stratumOf({ strata: [label, refund] }, where('mail', 'refund'))).toBe(refund)
    expect(stratumOf({ strata: [label] }, { ...where('mail', 'label'), risk: 'outside' })).toMatchObject({ risk: 'outside', n: 0 })
    expect(stratumOf({ strata: [label] }, where('mail', 'refund'))).toMatchObject({ act: 'refund', n: 0, from: { seq: 7, at: 8 } })
  })

  test('is shared by the event types that come after the first fifty', () => {
    const strata = Array.from({ length: MOST_TYPES }, (_, type) => stratum('label', 1, 1, `type${type}`))
    expect(stratumOf({ strata }, where('type3', 'refund'))).toMatchObject({ event_type: 'type3', act: 'refund' })
    expect(stratumOf({ strata }, where('another', 'label'))).toMatchObject({ event_type: REST, act: 'label', n: 0 })
    const shared = stratum('label', 4, 4, REST)
    expect(stratumOf({ strata: [...strata, shared] }, where('another', 'label'))).toBe(shared)
  })

  test('is shared by all event types beyond a hundred strata, and none beyond two hundred', () => {
    const many = (count: number) => Array.from({ length: count }, (_, act) => stratum(`act${act}`))
    expect(stratumOf({ strata: many(99) }, where('mail', 'label'))).toMatchObject({ event_type: 'mail' })
    expect(stratumOf({ strata: many(100) }, where('mail', 'label'))).toMatchObject({ event_type: REST, act: 'label' })
    const shared = stratum('label', 4, 4, REST)
    expect(stratumOf({ strata: [...many(100), shared] }, where('mail', 'label'))).toBe(shared)
    expect(stratumOf({ strata: many(199) }, where('mail', 'label'))).toMatchObject({ event_type: REST })
    expect(stratumOf({ strata: many(200) }, where('mail', 'label'))).toBeNull()
    expect(stratumOf({ strata: many(200) }, where('mail', 'act7'))).toMatchObject({ act: 'act7', event_type: 'mail' })
  })

  test('keeps its first and its last decision', () => {
    const first = counted(stratum('label'), { seq: 4, at: 5, agreed: true })
    expect(first).toMatchObject({ n: 1, k: 1, from: { seq: 4, at: 5 }, to: { seq: 4, at: 5 } })
    expect(counted(first, { seq: 6, at: 7, agreed: false })).toMatchObject({ n: 2, k: 1, from: { seq: 4, at: 5 }, to: { seq: 6, at: 7 } })
  })
})

describe('an act is proven', () => {
  test('with all acts together once it has proved its floor', () => {
    const [label, tag, refund] = [stratum('label', 200), stratum('tag', 160), stratum('refund', 20)]
    const all = stratum(REST, 400)
    expect(verdictIn(judged(0.99, label, tag, refund, all), label)).toBe('proven')
    expect(verdictIn(judged(0.99, label, tag, refund, all), refund)).toBe('open')
    expect(verdictIn(judged(0.99, label, tag, refund), label)).toBe('open')
    expect(verdictIn(judged(0.99, label, tag, { ...all, state: 'refuted' }), label)).toBe('open')
    expect(verdictIn(judged(0.99, label, tag, { ...stratum(REST, 1), state: 'proven' }), label)).toBe('proven')
    expect(verdictIn(judged(0.99), all)).toBe('proven')
  })

  test('not while those that have proved their floor are too few by themselves, or err more than the others', () => {
    const all = stratum(REST, 400)
    const label = stratum('label', 200)
    expect(verdictIn(judged(0.99, label, stratum('tag', 60), stratum('move', 60), all), label)).toBe('open')
    expect(verdictIn(judged(0.99, label, stratum('tag', 160), all), label)).toBe('proven')
    expect(verdictIn(judged(0.99, label, { ...stratum('tag', 160), state: 'refuted' }, all), label)).toBe('open')
    expect(verdictIn(judged(0.99, label, stratum('tag', 260, 257), all), label)).toBe('open')
    const tag = stratum('tag', 160)
    const outside = (one: Stratum): Stratum => ({ ...one, risk: 'outside' })
    expect(verdictIn(judged(0.99, outside(label), tag, outside(all)), outside(label))).toBe('open')
  })

  test('with acts on other event types once it has proved its floor on its own', () => {
    const on = (event_type: string, n: number) => [stratum('label', n, n, event_type), stratum(REST, n, n, event_type)] as const
    const [rare] = on('note', 70)
    expect(verdictIn(judged(0.99, ...on('mail', 288), ...on('note', 70)), rare)).toBe('proven')
    expect(verdictIn(judged(0.99, ...on('mail', 287), ...on('note', 70)), rare)).toBe('open')
    expect(verdictIn(judged(0.99, ...on('mail', 5000), ...on('note', 69)), on('note', 69)[0])).toBe('open')
    expect(verdictIn(judged(0.99, stratum('label', 5000, 4900), stratum(REST, 5000, 4900), ...on('note', 70)), rare)).toBe('open')
  })

  test('with what reaches outside, too, if it is done inside', () => {
    const outside = (one: Stratum): Stratum => ({ ...one, risk: 'outside' })
    const nothing = stratum('nothing', 70)
    const strata = [nothing, stratum(REST, 70), outside(stratum('label', 288)), outside(stratum(REST, 288))]
    expect(verdictIn(judged(0.99, ...strata), nothing)).toBe('proven')
    expect(verdictIn(judged(0.99, ...strata.slice(0, 3)), nothing)).toBe('open')
    const alone = [stratum('nothing', 200), stratum('note', 160), stratum(REST, 360)] as const
    const erring = [outside(stratum('label', 1000, 980)), outside(stratum(REST, 1000, 980))]
    expect(verdictIn(judged(0.99, ...alone, ...erring), alone[0])).toBe('proven')
    const label = outside(stratum('label', 70))
    expect(verdictIn(judged(0.99, label, outside(stratum(REST, 70)), stratum('nothing', 288), stratum(REST, 288)), label)).toBe('open')
  })

  describe('with the other reflexes that the scope has learned', () => {
    const outside = (one: Stratum): Stratum => ({ ...one, risk: 'outside' })
    const [label, all] = [outside(stratum('label', 70)), outside(stratum(REST, 70))]
    const beside = (...strata: Stratum[]) => ({
      ...judged(0.99, label, all),
      others: [countsOfOthers([{ strata }], 'outside', { least: { agreement: 0.99, support: 0 }, noise: 0 })],
    })
    const verdicts = (given: ReturnType<typeof beside>) => [verdictIn(given, label), verdictIn(given, all)]

    test('once all of them have as many agreements as one of several acts needs', () => {
      expect(verdicts(beside(outside(stratum('tag', 288, 288, 'note')), outside(stratum(REST, 288, 288, 'note'))))).toEqual([
        'proven',
        'proven',
      ])
      expect(verdicts(beside(outside(stratum('tag', 287)), outside(stratum(REST, 287))))).toEqual(['open', 'open'])
      expect(verdicts(beside(stratum('tag', 288), stratum(REST, 288)))).toEqual(['open', 'open'])
    })

    test('and not by those that have not reached the floor, or that err more', () => {
      const few = Array.from({ length: 5 }, (_, act) => outside(stratum(`act${act}`, 60)))
      expect(verdicts(beside(...few, outside(stratum(REST, 300))))).toEqual(['open', 'proven'])
      expect(verdicts(beside(outside(stratum('tag', 400, 396)), outside(stratum(REST, 400, 396))))).toEqual(['open', 'open'])
    })

    test('which never refute it', () => {
      expect(verdicts(beside(outside(stratum('tag', 400, 100)), outside(stratum(REST, 400, 100))))).toEqual(['open', 'open'])
      const alone = outside(stratum('label', 358))
      expect(verdictIn(beside(outside(stratum(REST, 400, 100))), alone)).toBe('proven')
    })
  })

  test('with what was foreseen of it from its first comparison on', () => {
    const act = { event_type: 'mail', act: 'label', n: 90, k: 88, from: { seq: 3, at: 4 }, to: { seq: 9, at: 9 } }
    const where = { event_type: 'mail', risk: 'outside' as const, act: 'label', seq: 20, at: 21 }
    const of = (more: object, strata: Stratum[] = []) => stratumOf({ strata, foreseen: [act] }, { ...where, ...more })
    expect(of({})).toMatchObject({ act: 'label', risk: 'outside', state: 'open', n: 90, k: 88, from: { seq: 3 }, to: { seq: 9 } })
    expect([of({ act: 'tag' })?.n, of({ event_type: 'note' })?.n]).toEqual([0, 0])
    const known = { ...stratum('label', 5), risk: 'outside' as const }
    expect(of({}, [known])).toBe(known)
  })

  test.each([
    ['before any comparison', 0, 0, true],
    ['while none disagrees', 3, 3, true],
    ['not after one that disagreed early', 10, 9, false],
    ['again once more agreed than one that errs as often as the floor lets', 60, 59, true],
  ])('counts among all acts %s', (_, n, k, counts) => {
    expect(joins(judged(0.99), stratum('label', n, k))).toBe(counts)
    expect(joins(judged(0.95), stratum('label', n, k))).toBe(false)
  })

  test('by itself where it proves the bound of all alone, or a bound of its own', () => {
    const frequent = stratum(REST, 5000)
    const refund = stratum('refund', 100)
    expect(verdictIn(judged({ default: 0.95, refund: 0.999 }, refund, frequent), refund)).toBe('open')
    expect(verdictIn(judged({ default: 0.95, other: 0.999 }, refund, frequent), refund)).toBe('proven')
    expect(isProvenAlone(judged(0.99), stratum('label', 358))).toBe(true)
    expect(isProvenAlone(judged(0.99), stratum('label', 357))).toBe(false)
  })

  test('only by as many decisions as the setting demands, and is refuted by fewer', () => {
    const supported = { ...judged(0.95), least: { agreement: 0.95, support: 100 } }
    const verdicts = [stratum('label', 99), stratum('label', 100), stratum('label', 2, 0)].map((one) => verdictIn(supported, one))
    expect(verdicts).toEqual(['open', 'proven', 'refuted'])
  })

  test('and counts among all acts once it has proved its floor, where they have a bound together', () => {
    const counts = (agreement: number, n: number) => countsTogether(judged(agreement), stratum('label', n))
    expect([counts(0.99, 70), counts(0.99, 69), counts(0.95, 70)]).toEqual([true, false, false])
  })

  test('to the bounds that its audits hold it to', () => {
    const strict = judged(0.99)
    expect(provenBounds(strict, stratum('label', 100))).toEqual({ alone: 0.95, together: 0.99 })
    expect(provenBounds(strict, stratum('label', 400))).toEqual({ alone: 0.99, together: null })
    expect(provenBounds(judged(0.95), stratum('label', 100))).toEqual({ alone: 0.95, together: null })
    expect(barOf(strict, stratum('label', 100))).toEqual(barAt(0.95))
    expect(barOf(strict, stratum('label', 400))).toEqual(barAt(0.99))
    expect(barOf(strict, stratum(REST, 10))).toEqual(barAt(0.99))
    expect(barOf(judged(0.95), stratum(REST, 10))).toEqual(barAt(0.95))
  })
})

test('an open act says what it lacks, by itself or with all acts', () => {
  const all = stratum(REST, 300)
  expect(openText(judged(0.95), stratum('label', 60))).toBe('60 of 60 decisions for label on mail agreed: at least 10 more must agree')
  expect(openText(judged(0.95), stratum('label', 80))).toContain('agreed: at least 0 more must agree')
  const [label, tag] = [stratum('label', 100), stratum('tag', 200)]
  expect(openText(judged(0.99, all), stratum('label', 60))).toContain('agreed: at least 10 more must agree')
  expect(openText(judged(0.99, label, tag, all), label)).toBe(
    '100 of 100 decisions for label on mail agreed, 300 of 300 of all acts together: at least 58 more must agree',
  )
  expect(openText(judged(0.99, label, tag, { ...all, n: 400, k: 400 }), label)).toContain('at least 58 more must agree')
  expect(openText(judged(0.99, label, tag, { ...all, state: 'refuted' }), label)).toContain('at least 258 more must agree')
  const wrong = stratum(REST, 300, 250, 'note')
  expect(openText(judged(0.99, label, tag, { ...all, n: 400, k: 400 }, wrong), label)).toContain('at least 58 more must agree')
})

test('the noise of a teacher lowers the bar of both sides', () => {
  const bar = barAt(0.95, 0.1)
  expect(bar.poor).toBeCloseTo(0.95 * 0.9 + 0.05 * 0.1, 12)
  expect(bar.good).toBeCloseTo(0.99 * 0.9, 12)
  expect(bar.noise).toBe(0.1)
})
