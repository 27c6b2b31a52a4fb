import { describe, expect, test } from 'vitest'
import type { Action } from '../../../src/contract/action.ts'
import type { Certificate, Stratum, Teacher } from '../../../src/contract/certificate.ts'
import { countSigns, isLeft, signsOf } from '../../../src/evidence/branches.ts'
import { obstacle, openCertificate, why, type Observation } from '../../../src/evidence/certificate.ts'
import { redactor } from '../../../src/traces/redact.ts'
import { proceedAll } from '../../support/proceed-all.ts'
import { seededRandom } from '../../support/random.ts'

const teacher: Teacher = { by: 'model', agent_version: '1', model: 'a', prompt_hash: 'p', tools_hash: 't', settings_revision: 3 }
const least = { agreement: { default: 0.99, restart: 0.95 }, support: 0 }
const subject = { kind: 'reflex', id: 'triage', version: '1', hash: 'h' } as const
const where = { event_type: 'log.line', risk: 'outside', act: 'restart' } as const
const SERVICES = ['billing', 'search', 'mail', 'cart', 'feed'] as const
type Service = (typeof SERVICES)[number]

const restart = (service: string): Action => ({ action_type: 'call_tool', tool: 'restart', args: { service } })
const lineOf = (service: string) => ({ id: 'e', type: 'log.line', source: 'test', meta: {}, line: `upstream timeout of ${service}` })
const signs = (service: string): string[] => signsOf(lineOf(service), restart(service))

const seen = (service: Service, more: Partial<Extract<Observation, { agreed: boolean }>> = {}): Observation => ({
  kind: 'audited',
  ...where,
  agreed: true,
  signs: signs(service),
  seq: 1,
  at: 1,
  teacher,
  ...more,
})
const disagrees = (service: Service): Observation => seen(service, { agreed: false })

function after(before: Certificate, ...all: Observation[]) {
  const { certificate, changes } = proceedAll(before, all)
  const stratum = certificate.strata.find(({ act }) => act === 'restart') as Stratum
  const stopsOf = (own: string[] | null) => obstacle(certificate, { ...where, at: 2, teacher, least, signsOf: () => own })
  const stops = (service: string) => stopsOf(signs(service))
  return { certificate, changes, stratum, stops, stopsOf, acts: SERVICES.filter((service) => stops(service) === null) }
}

const times = <One>(count: number, of: (index: number) => One): One[] => Array.from({ length: count }, (_, index) => of(index))
const others = SERVICES.filter((service) => service !== 'billing')
const each = (services: readonly Service[], rounds: number): Observation[] =>
  times(rounds, () => services.map((service) => seen(service))).flat()

/** Proven by so many comparisons of each service, in turn. */
function proven(rounds: number, services: readonly Service[] = SERVICES): Certificate {
  const compared = times(rounds, () => services.map((service) => seen(service, { kind: 'compared' }))).flat()
  const { certificate, stratum } = after(openCertificate(subject, { teacher, at: 0, least }), ...compared)
  expect(stratum.state).toBe('proven')
  return certificate
}

describe('a teacher that changes in one branch', () => {
  const changed = () => after(proven(40), disagrees('billing'))

  test('stops all that shares a value with the decision that disagreed, at first', () => {
    const { acts, stops } = changed()
    expect(acts).toEqual([])
    expect(stops('mail')).toBe(
      'for restart on log.line 1 of 1 decisions since its proof disagreed: at least 20 more must agree, of decisions like this one',
    )
  })

  test('stops that branch alone once others have agreed', () => {
    const { acts, certificate } = after(changed().certificate, ...each(others, 1))
    expect(acts).toEqual(others)
    expect(why(certificate)[0]).toContain('it does not act for now')
  })

  test('is known by what all decisions that disagreed have in common', () => {
    const first = seen('billing', { agreed: false, signs: [...signs('billing'), 'night'] })
    const { stratum } = after(proven(40), first, ...each(others, 1), disagrees('billing'))
    expect(Object.keys(stratum.branch?.signs ?? {})).not.toContain('night')
    expect(signs('billing')).toEqual(expect.arrayContaining(Object.keys(stratum.branch?.signs ?? {})))
  })

  test('is learned again, and what did not change keeps its proof', () => {
    const { changes, stratum, acts, stops } = after(changed().certificate, ...each(others, 1), ...times(4, () => disagrees('billing')))
    expect(changes).toMatchObject([{ kind: 'drifted', act: 'restart' }])
    expect(stratum).toMatchObject({ state: 'proven', audits: { audits: 0 } })
    expect(acts).toEqual(others)
    expect(stops('billing')).toMatch(/decisions like this one disagreed since its proof, and are left to the slow path$/)
  })

  test('has no part in what the rest is proven by', () => {
    const before = proven(14)
    const { stratum, acts } = after(before, disagrees('billing'), ...each(others, 1), ...times(4, () => disagrees('billing')))
    // Seventy comparisons prove it: the branch had 14, and one audit came after it was known.
    expect([before.strata[0]?.n, stratum.state, stratum.n, stratum.k]).toEqual([70, 'open', 57, 57])
    expect(acts).toEqual([])
    const again = (more: number) => after({ ...before, strata: [stratum] }, ...times(more, () => seen('mail', { kind: 'compared' })))
    expect([again(12).acts, again(13).acts]).toEqual([[], others])
  })

  test('has no part in that with decisions of a time when it agreed again, either', () => {
    const agreedAgain = [disagrees('billing'), ...each(others, 1), ...times(20, () => seen('billing'))]
    const before = after(proven(14), ...agreedAgain, ...each(others, 1))
    expect([before.stratum.branch, before.stratum.audits.audits]).toEqual([undefined, 29])
    const { stratum } = after(before.certificate, disagrees('billing'), ...each(others, 1), ...times(4, () => disagrees('billing')))
    // The others were compared 56 times; 12 of their audits are known to be of neither branch.
    expect(stratum.left).toHaveLength(1)
    expect(stratum.n).toBeLessThanOrEqual(56 + 12)
  })

  test('leaves the rest in the doubt that a disagreement outside of it had raised', () => {
    const inDoubt = after(changed().certificate, ...each(others, 1), disagrees('mail'))
    const { stratum, acts, stops, certificate } = after(inDoubt.certificate, ...times(4, () => disagrees('billing')))
    expect([stratum.state, stratum.left?.length, acts]).toEqual(['proven', 1, []])
    expect(stops('cart')).toBe('for restart on log.line earlier decisions disagreed: at least 20 more must agree')
    expect(after(certificate, ...times(20, () => seen('mail'))).acts).toEqual(others)
  })

  test('stops an action that an earlier version has queued, of which nobody knows the values', () => {
    expect(after(proven(40)).stopsOf(null)).toBeNull()
    const open = after(changed().certificate, ...each(others, 1))
    expect(open.stopsOf(null)).toContain('1 of 4 decisions')
    expect(after(open.certificate, ...times(4, () => disagrees('billing'))).stopsOf(null)).toMatch(/left to the slow path$/)
  })

  test('is left, with all that its signs may have had, where most decisions were of it', () => {
    const before = proven(14, ['billing', 'billing', 'billing', 'billing', 'mail'])
    const { stratum } = after(before, disagrees('billing'), ...each(['mail'], 3), ...times(4, () => disagrees('billing')))
    expect([stratum.state, stratum.n]).toEqual(['open', 14])
  })

  test('neither proves nor refutes anything afterwards', () => {
    const { certificate } = after(changed().certificate, ...each(others, 1), ...times(4, () => disagrees('billing')))
    const { certificate: later, changes } = after(certificate, disagrees('billing'), seen('billing', { kind: 'compared', agreed: false }))
    expect([later, changes]).toEqual([certificate, []])
  })
})

describe('a teacher that changes everywhere', () => {
  test('stops the rest with a disagreement outside the branch', () => {
    const { acts, stops } = after(proven(40), disagrees('billing'), ...each(others, 1), disagrees('mail'))
    expect(acts).toEqual([])
    expect(stops('cart')).toMatch(/ 2 of \d+ decisions since its proof disagreed/)
  })

  test('ends the whole proof', () => {
    const { changes, stratum } = after(proven(40), ...times(5, (index) => disagrees(SERVICES[index] as Service)))
    expect(changes).toMatchObject([{ kind: 'drifted' }])
    expect(stratum).toMatchObject({ state: 'open', n: 0, drifts: 1 })
  })

  test('ends it, too, where the values of its decisions are unknown', () => {
    const unknown = seen('billing', { agreed: false, signs: undefined })
    const { stratum, acts } = after(proven(40), unknown)
    expect([stratum.branch, acts]).toEqual([undefined, []])
    expect(after(proven(40), ...times(5, () => unknown)).stratum).toMatchObject({ state: 'open', n: 0 })
  })
})

describe('a disagreement that the slow path does not repeat', () => {
  const taken = (of: Service): Observation => ({
    ...where,
    kind: 'retracted',
    of: 'audit',
    counted_at: 1,
    signs: signs(of),
    seq: 1,
    at: 1,
    teacher,
  })

  test('opens no branch for good', () => {
    const { acts, stratum } = after(proven(40), disagrees('billing'), taken('billing'))
    expect([acts, stratum.branch, stratum.audits.disagreed]).toEqual([[...SERVICES], undefined, 0])
  })

  test('leaves the others of its branch', () => {
    const { acts, stratum } = after(proven(40), disagrees('billing'), ...each(others, 1), disagrees('billing'), taken('billing'))
    expect([acts, stratum.branch?.audits.disagreed]).toEqual([others, 1])
  })

  test('outside of a branch leaves it as it is', () => {
    const { acts } = after(proven(40), disagrees('billing'), ...each(others, 1), disagrees('mail'), taken('mail'))
    expect(acts).toEqual(others)
  })

  test('says nothing of later ones once its branch is left', () => {
    const left = after(proven(40), disagrees('billing'), ...each(others, 1), ...times(4, () => disagrees('billing')))
    const inDoubt = after(left.certificate, disagrees('mail'))
    expect([left.acts, inDoubt.acts]).toEqual([others, []])
    expect(after(inDoubt.certificate, taken('billing')).acts).toEqual([])
  })

  test('says nothing of the audits of a later proof', () => {
    const later = proven(40)
    const strata = later.strata.map((one) => ({ ...one, to: { seq: 9, at: 9 } }))
    const { certificate } = after({ ...later, strata }, disagrees('mail'))
    expect(after(certificate, { ...taken('mail'), counted_at: 8 } as Observation).certificate).toEqual(certificate)
  })

  test('or that twenty agreements outweigh counts in the test of all', () => {
    const { acts, stratum } = after(proven(14), disagrees('billing'), ...times(20, () => seen('billing')))
    expect([acts, stratum.branch, stratum.audits.audits, stratum.audits.disagreed]).toEqual([[...SERVICES], undefined, 21, 1])
  })
})

describe('the signs of decisions', () => {
  test('are the values of an event, its numbers by their size, and those of the act', () => {
    const heat = (level: string, at: number) =>
      signsOf({ id: 'e', type: 'x', source: 's', meta: {}, temperature: at } as never, {
        action_type: 'call_tool',
        tool: 'heat',
        args: { level },
      })
    expect(heat('low', 20)).toEqual(heat('low', 21))
    expect(heat('low', 20)).not.toEqual(heat('low', 28))
    expect(heat('low', 20)).not.toEqual(heat('high', 20))
  })

  test('say nothing of what a scope redacts', () => {
    const log = { clean: redactor(['diagnosis', 'dose']) }
    const ill = (diagnosis: string, dose: number) =>
      signsOf(
        { ...lineOf('mail'), diagnosis, of: { dose } } as never,
        { action_type: 'call_tool', tool: 'book', args: { diagnosis, dose } },
        log,
      )
    expect(ill('measles', 20)).toEqual(ill('gout', 400))
    expect(ill('measles', 20)).not.toEqual([])
  })

  test('are counted at least as often as they were seen', () => {
    const random = seededRandom(7)
    const seen_of = new Map<string, number>()
    let counts: Readonly<Record<string, number>> = {}
    for (let index = 0; index < 2000; index += 1) {
      const own = times(6, () => `s${Math.floor(random() ** 2 * 150)}`).filter((one, at, all) => all.indexOf(one) === at)
      for (const one of own) seen_of.set(one, (seen_of.get(one) ?? 0) + 1)
      counts = countSigns(counts, own)
    }
    expect(Object.keys(counts)).toHaveLength(64)
    const least_kept = Math.min(...Object.values(counts))
    for (const [sign, count] of seen_of) expect(counts[sign] ?? least_kept).toBeGreaterThanOrEqual(count)
  })

  test('that are left are found again', () => {
    expect(isLeft({ left: ['a'] }, ['b', 'a'])).toBe(true)
    expect([isLeft({ left: ['a'] }, ['b']), isLeft({}, ['b'])]).toEqual([false, false])
  })
})

test('of what stays as good as its bound asks, at most n in 2,000 raise an alarm within n audits', { tags: ['simulation'] }, () => {
  const [lives, audits] = [400, 200]
  const start = proven(40)
  let alarms = 0
  for (let life = 0; life < lives; life += 1) {
    const random = seededRandom(life)
    const all = times(audits, () => seen(SERVICES[Math.floor(random() * SERVICES.length)] as Service, { agreed: random() >= 0.01 }))
    if (after(start, ...all).changes.some(({ kind }) => kind === 'drifted')) alarms += 1
  }
  expect(alarms / lives).toBeLessThanOrEqual(audits / 2000)
})
