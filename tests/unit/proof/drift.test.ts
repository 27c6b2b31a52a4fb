import { describe, expect, test } from 'vitest'
import {
  type Cusum,
  countAudit,
  countShape,
  doubt,
  emptyCusum,
  emptyShapeWindow,
  emptyTaught,
  teachShape,
  unseenShare,
} from '../../../src/evidence/drift.ts'
import type { AuditPace } from '../../../src/contract/reports/reflex-report.ts'
import type { AuditOccasion } from '../../../src/contract/feedback.ts'
import { countAct, countAnswer, isAudited, occasionOf, unitHash } from '../../../src/evidence/draw.ts'
import { barAt } from '../../../src/evidence/e-process.ts'
import { seededRandom } from '../../support/random.ts'

/** Audits until the alarm, at most `most`. */
function auditsUntilAlarm(random: () => number, agreement: number, most: number, bar = barAt(0.95)): number {
  let state = emptyCusum()
  while (!state.alarm && state.audits < most) state = countAudit(state, random() < agreement, bar)
  return state.alarm ? state.audits : Infinity
}

describe('the audit of what acts', () => {
  test('raises a false alarm after 2,000 audits on average, or later', { tags: ['simulation'] }, () => {
    const random = seededRandom(2)
    const runs = Array.from({ length: 300 }, () => Math.min(auditsUntilAlarm(random, 0.99, 10_000), 10_000))
    expect(runs.reduce((sum, audits) => sum + audits, 0) / runs.length).toBeGreaterThan(2000)
  })

  test.each([
    [0, 5],
    [0.5, 20],
    [0.8, 70],
    [0.9, 200],
  ])('notices in 95 % of the cases that agreement fell to %d, within %d audits', { tags: ['simulation'] }, (agreement, within) => {
    const random = seededRandom(4)
    const runs = Array.from({ length: 1000 }, () => auditsUntilAlarm(random, agreement, within))
    expect(runs.filter((audits) => audits <= within).length).toBeGreaterThanOrEqual(950)
  })

  test('keeps its alarm', () => {
    let state = emptyCusum()
    for (let audit = 0; audit < 5; audit += 1) state = countAudit(state, false, barAt(0.95))
    for (let audit = 0; audit < 1000; audit += 1) state = countAudit(state, true, barAt(0.95))
    expect(state).toMatchObject({ audits: 1005, disagreed: 5, alarm: true })
  })
})

describe('of 10,000 streams of 100 audits each, in which no audit disagrees more often than what is good,', () => {
  const bar = barAt(0.95)
  const most = 1 - bar.good
  type Order = (place: number, cusum: Cusum) => number
  /** The chance that each audit disagrees. The adversaries see all audits before it. */
  const orders: Record<string, Order> = {
    'as often as that': () => most,
    never: () => 0,
    'in bursts': (place) => (place % 50 < 10 ? most : 0),
    'more and more often': (place) => (most * place) / 100,
    'where an alarm is near': (_, { sum }) => (sum > 1 ? most : most / 2),
    'until one did': (_, { disagreed }) => (disagreed === 0 ? most : 0),
  }
  const LIVES = Math.ceil(10_000 / Object.keys(orders).length)
  const DELTA = 0.05

  test.each(Object.entries(orders))('%s, at most 5 % raise an alarm', { tags: ['simulation'] }, (_, order) => {
    const random = seededRandom(21)
    let alarms = 0
    for (let life = 0; life < LIVES; life += 1) {
      let state = emptyCusum()
      for (let place = 0; place < 100; place += 1) state = countAudit(state, random() >= order(place, state), bar)
      if (state.alarm) alarms += 1
    }
    expect(alarms / LIVES).toBeLessThanOrEqual(DELTA + 3 * Math.sqrt((DELTA * (1 - DELTA)) / LIVES))
  })
})

describe('the guard without labels', () => {
  const run = (random: () => number, shares: readonly number[], baseline: number) => {
    let state = emptyShapeWindow()
    for (const share of shares) state = countShape(state, random() < share, baseline)
    return state
  }

  test.each([0, 0.02, 0.2])('stays quiet for 20,000 events with the %d unseen shapes that it was judged on', (baseline) => {
    expect(run(seededRandom(6), Array(20_000).fill(baseline), baseline)).toMatchObject({ events: 20_000, alarm: false })
  })

  test('notices within a window that a tenth of the shapes is new', () => {
    expect(run(seededRandom(6), [...Array(5000).fill(0.02), ...Array(500).fill(0.12)], 0.02).alarm).toBe(true)
  })

  test('remembers no more than a window', () => {
    expect(run(seededRandom(6), Array(5000).fill(0.2), 0.2).unseen.length).toBeLessThan(200)
  })
})

describe('the draw of an audit', () => {
  const ids = Array.from({ length: 20_000 }, (_, index) => `event-${index}`)

  test('takes about the share that was asked for, the same ones each time', () => {
    const drawn = ids.filter((id) => isAudited(id, { share: 0.02, salt: 'one' }))
    expect(drawn.length).toBeGreaterThan(340)
    expect(drawn.length).toBeLessThan(460)
    expect(ids.filter((id) => isAudited(id, { share: 0.02, salt: 'one' }))).toEqual(drawn)
    expect(drawn.filter((id) => isAudited(id, { share: 0.02, salt: 'two' })).length).toBeLessThan(25)
  })

  test('of a share of 0 takes none, of 1 all', () => {
    expect(ids.filter((id) => isAudited(id, { share: 0, salt: '' }))).toEqual([])
    expect(ids.filter((id) => isAudited(id, { share: 1, salt: '' }))).toEqual(ids)
  })

  /** The occasions of so many acts after a proof. */
  function occasions(share: number, risk: 'inside' | 'outside', newAt = -1, count = 2000): (AuditOccasion | null)[] {
    let pace: AuditPace = { proof: 1, acts: 0, unaudited: 0 }
    return ids.slice(0, count).map((event_id, index) => {
      const occasion = occasionOf(pace, { event_id, salt: 's', share, risk, is_new: index === newAt })
      pace = countAct(pace, occasion)
      if (occasion !== null) pace = countAnswer(pace, pace.acts, true)
      return occasion
    })
  }

  test.each(['inside', 'outside'] as const)('is dense after a proof, and falls to the share: %s', (risk) => {
    const all = occasions(0.02, risk)
    expect(all.slice(0, 5)).not.toContain(null)
    const audited = (from: number, to: number) => all.slice(from, to).filter((one) => one !== null).length
    expect(audited(5, 105)).toBeGreaterThan(audited(105, 205))
    expect(audited(1000, 2000)).toBeLessThan(risk === 'inside' ? 40 : 110)
    expect(occasions(0.02, risk)).toEqual(all)
  })

  test.each([0, 0.0001, 0.02])('takes one in twenty acts that reach outside, whatever the share: %d', (share) => {
    const audited = occasions(share, 'outside').flatMap((one, index) => (one === null ? [] : [index]))
    expect(audited[0]).toBeLessThan(20)
    expect(Math.max(...audited.slice(1).map((at, index) => at - (audited[index] ?? 0)))).toBeLessThanOrEqual(20)
    expect(occasions(0, 'inside').every((one) => one === null)).toBe(true)
  })

  test('follows what is new', () => {
    expect(occasions(0, 'outside', 7)[7]).toBe('new')
    expect(occasions(0.0001, 'inside', 700)[700]).toBe('new')
    expect(occasions(0, 'inside', 7)[7]).toBeNull()
  })

  test('is even', () => {
    const tenths = Array<number>(10).fill(0)
    const places = ids.map((id) => Math.floor(unitHash(id) * 10))
    for (const tenth of tenths.map((_, place) => places.filter((one) => one === place).length))
      expect(Math.abs(tenth - 2000)).toBeLessThan(200)
  })
})

describe('the counts of drift', () => {
  const bar = barAt(0.95)

  test.each([0.9, 0.91, 0.95, 0.99, 0.999])('has no doubt before a disagreement, and until enough agree after one: bound %d', (bound) => {
    const own = barAt(bound)
    expect(doubt(emptyCusum(), own)).toBe(0)
    let state = countAudit(emptyCusum(), false, own)
    for (let agreed = 0; agreed < 18; agreed += 1) state = countAudit(state, true, own)
    expect(doubt(state, own)).toBeGreaterThan(0)
    for (let agreed = 0; agreed < 2; agreed += 1) state = countAudit(state, true, own)
    expect(doubt(state, own)).toBe(0)
  })

  test('a doubt ends after twenty agreements, or more where more disagreed', () => {
    expect(doubt(emptyCusum(), bar)).toBe(0)
    const once = countAudit(emptyCusum(), false, bar)
    expect(doubt(once, bar)).toBe(20)
    expect(doubt(countAudit(once, true, bar), bar)).toBe(19)
    expect(doubt(countAudit(once, false, bar), bar)).toBeGreaterThan(40)
  })

  test('an alarm starts at the fifth disagreement in a row, and agreement alone starts none', () => {
    let state = emptyCusum()
    const alarms = Array.from({ length: 6 }, () => {
      state = countAudit(state, false, bar)
      return state.alarm
    })
    expect(alarms).toEqual([false, false, false, false, true, true])
    expect(countAudit(emptyCusum(), true, bar)).toEqual({ audits: 1, disagreed: 0, sum: 0, alarm: false })
  })

  test('the 101st shape is counted among the rare ones', () => {
    let shapes = emptyTaught()
    for (let at = 0; at < 102; at += 1) shapes = teachShape(shapes, `s${at}`)
    expect([Object.keys(shapes.taught).length, shapes.rare]).toEqual([100, 2])
    expect(teachShape(shapes, 's5')).toMatchObject({ rare: 2, taught: { s5: 2 } })
  })

  test('as many unseen shapes are usual as were seen once', () => {
    expect(unseenShare(emptyTaught())).toBe(0)
    expect(unseenShare({ taught: { a: 1, b: 3 }, rare: 0 })).toBe(0.25)
    expect(unseenShare({ taught: { a: 1, b: 3 }, rare: 4 })).toBe(5 / 8)
  })

  test('a window of 500 events takes 15 unseen shapes where none is usual, and no 16th', () => {
    const seen = (count: number, usual = 0) =>
      Array.from({ length: count }).reduce<ReturnType<typeof emptyShapeWindow>>(
        (state) => countShape(state, true, usual),
        emptyShapeWindow(),
      )
    // The window takes four deviations more where a fifth is usual.
    expect([seen(135, 0.2).alarm, seen(136, 0.2).alarm]).toEqual([false, true])
    expect(seen(15)).toMatchObject({ events: 15, alarm: false })
    expect(seen(16)).toMatchObject({ alarm: true })
    expect(countShape(seen(16), true, 0)).toMatchObject({ unseen: [], alarm: true })
    // The oldest leaves the window with the 501st event.
    expect(countShape(seen(15), true, 0, 485)).toMatchObject({ events: 500, alarm: true })
    expect(countShape(seen(15), true, 0, 486)).toMatchObject({ events: 501, alarm: false })
    expect(countShape(emptyShapeWindow(), false, 0)).toEqual({ events: 1, unseen: [], alarm: false })
  })
})
