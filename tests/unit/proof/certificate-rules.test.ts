import { describe, expect, test } from 'vitest'
import type { Agreement } from '../../../src/contract/agreement.ts'
import type { Certificate, Stratum, Teacher } from '../../../src/contract/certificate.ts'
import type { Risk } from '../../../src/contract/risk.ts'
import {
  allow,
  doubtIn,
  expiry,
  obstacle,
  openCertificate,
  proceed,
  reject,
  rejectedStrata,
  why,
  type Observation,
} from '../../../src/evidence/certificate.ts'
import { emptyCusum } from '../../../src/evidence/drift.ts'
import { noValues, teachValues } from '../../../src/evidence/novelty.ts'
import { freshStratum, MOST_TYPES, REST } from '../../../src/evidence/strata.ts'
import { proceedAll } from '../../support/proceed-all.ts'

const teacher: Teacher = { by: 'model', agent_version: '1', model: 'a', prompt_hash: 'p', tools_hash: 't', settings_revision: 3 }
const subject = { kind: 'reflex', id: 'sort', version: '1', hash: 'h' } as const
const least = (agreement: Agreement, support = 0) => ({ agreement, support })
type Opening = Partial<Parameters<typeof openCertificate>[1]>
const opened = (of: Opening = {}): Certificate => openCertificate(subject, { teacher, at: 0, least: least(0.95), ...of })

/** Acts of mail that reach outside: the floor of each takes 118 agreements, all together 358. */
const stratum = (act: string, n: number, more: Partial<Stratum> = {}): Stratum => ({
  ...freshStratum({ event_type: 'mail', risk: 'outside', act }, { seq: 0, at: 0 }),
  n,
  k: n,
  ...more,
})
const proven = (act: string, n: number, more: Partial<Stratum> = {}): Stratum => stratum(act, n, { state: 'proven', ...more })
const rejected = (act: string, n: number): Stratum => stratum(act, n, { state: 'refuted', person: 'ann' })
/** So many disagreed since the proof that one more is an alarm. */
const doubtful = { audits: { audits: 10, disagreed: 4, sum: 6.5, alarm: false } }

type Seen = Extract<Observation, { agreed: boolean }>
const seen = (act: string, more: Partial<Seen> = {}): Seen => ({
  kind: 'compared',
  event_type: 'mail',
  risk: 'outside',
  act,
  agreed: true,
  seq: 1,
  at: 1,
  teacher,
  ...more,
})
const disagrees = (act: string): Seen => seen(act, { kind: 'audited', agreed: false })
const unseen = (is_unseen: boolean, more: { least?: Certificate['least'] } = {}): Observation => ({
  kind: 'shape',
  unseen: is_unseen,
  seq: 1,
  at: 1,
  teacher,
  ...more,
})
/** The strata after observations, in any order. */
function after(before: Certificate, ...all: Observation[]) {
  const { certificate, changes } = proceedAll(before, all)
  const find = (act: string, event_type = 'mail', risk: Risk = 'outside') =>
    certificate.strata.find((one) => one.act === act && one.event_type === event_type && one.risk === risk)
  return { certificate, changes, find }
}

describe('a certificate', () => {
  const window = { events: 0, unseen: [], alarm: false, baseline: 0.2 }
  const shapes = { taught: { s: 3 }, rare: 1 }
  const values = teachValues(noValues(), { sender: 'key:a', numbers: [{ place: 'amount', value: 7 }] })

  test('opens with the shapes and the values of the events before it', () => {
    expect(opened({ baseline: 0.2, shapes: { ...shapes, values } }).shapes).toStrictEqual({ ...window, ...shapes, values })
    expect(opened({ baseline: 0.2, shapes }).shapes).toStrictEqual({ ...window, ...shapes })
  })

  test('keeps them while it looks at shapes', () => {
    const looked = (before: Certificate['shapes']) => after({ ...opened(), shapes: before }, unseen(false)).certificate.shapes
    expect(looked({ ...window, ...shapes, values })).toStrictEqual({ ...window, ...shapes, values, events: 1 })
    expect(looked({ ...window, ...shapes })).toStrictEqual({ ...window, ...shapes, events: 1 })
  })

  test('that has lapsed stays as it is, whatever is observed', () => {
    const { certificate } = after(opened(), seen('label', { teacher: { ...teacher, model: 'b' } }))
    expect(proceed(certificate, seen('label'))).toEqual({ certificate, changes: [] })
  })

  test('has the least bound of what it has proven', () => {
    const by_tool = least({ default: 0.99, label: 0.95, refund: 0.999 })
    const strata = [proven('refund', 4000), proven('label', 80)]
    expect(after(opened({ least: by_tool, strata }), seen('find')).certificate).toMatchObject({ n: 4080, bound: 0.95 })
  })

  test('of an earlier procedure is no longer in force', () => {
    const of = { at: 1, teacher }
    expect(expiry({ ...opened(), procedure: 'sprt' as never }, of)).toBe('an earlier version of Reflex proved it')
    expect(expiry(opened(), of)).toBeNull()
  })

  test('says of what it has proven that nothing was compared or audited since', () => {
    expect(why(opened({ strata: [proven('label', 70)] }))[0]).toMatch(/; not compared or audited since\.$/)
  })
})

describe('under other settings', () => {
  test('what is proven to less is open again, and nothing else changes', () => {
    const person = { person: 'ann' }
    const strata = [proven('label', 400, person), proven('tag', 100, person), rejected('send', 2), stratum('find', 5)]
    const { certificate, changes } = after(opened({ strata }), unseen(false, { least: least(0.97) }))
    expect(certificate.strata).toEqual([strata[0], { ...strata[1], state: 'open', person: null }, strata[2], strata[3]])
    expect(changes).toEqual([{ kind: 'bounds_changed', reason: 'the setting learning.min_agreement or min_support changed' }])
  })

  test('that ask for less nothing is open again', () => {
    const strata = [proven('label', 400), rejected('send', 2)]
    const { certificate, changes } = after(opened({ strata }), unseen(false, { least: least(0.9) }))
    expect([certificate.strata, certificate.least, changes]).toEqual([strata, least(0.9), []])
  })

  test('acts that were proven together are open again with all acts', () => {
    const strata = [proven(REST, 358), proven('label', 118)]
    const { find } = after(opened({ least: least(0.99), strata }), unseen(false, { least: least(0.999) }))
    expect([find(REST)?.state, find('label')?.state]).toEqual(['open', 'open'])
  })
})

describe('words that are compared', () => {
  const by = (replies: string, says: number | null = null) => seen('reply + label', { words: { replies, says } })

  test('hold for the setting by which they were compared first', () => {
    const { certificate: first } = after(opened(), by('exact'))
    expect(first).toMatchObject({ replies: 'exact', strata: [{ n: 1 }] })
    expect(after(first, by('exact')).certificate.strata).toMatchObject([{ n: 2 }])
    expect(proceed(first, by('meaning'))).toEqual({ certificate: first, changes: [] })
    expect(after(first, seen('reply + label')).certificate).toMatchObject({ replies: 'exact', strata: [{ n: 2 }] })
    expect(after(opened(), seen('label')).certificate).not.toHaveProperty('replies')
  })

  test('end with another setting, and acts without words do not', () => {
    const of = { at: 1, teacher }
    const certificate = { ...opened(), replies: 'exact' }
    expect([expiry(certificate, { ...of, replies: 'exact' }), expiry(opened(), { ...of, replies: 'exact' })]).toEqual([null, null])
    expect(expiry(certificate, { ...of, replies: 'meaning' })).toBe('the setting learning.replies changed')
  })

  test('of its own choice wait for a person', () => {
    const { certificate } = after(opened({ strata: [stratum('reply + label', 69)] }), by('exact', 7))
    expect(certificate.strata).toMatchObject([{ state: 'proven', says: 7 }])
    expect(obstacle(certificate, { ...by('exact', 7), replies: 'exact' })).toBe(
      'its action reply + label on mail is proven: a person must allow it',
    )
  })

  test('of its own choice are not allowed with the words that it said before', () => {
    const { certificate: before } = after(opened({ strata: [proven('reply + label', 70)] }), by('exact'))
    const place = { event_type: 'mail', risk: 'outside', act: 'reply + label' } as const
    const person = (given: Certificate) => given.strata[0]?.person
    const chooses = after(allow(before, place, 'ann'), by('exact', 7)).certificate
    expect([person(allow(before, place, 'ann')), person(chooses)]).toEqual(['ann', null])
    expect(person(after(allow(chooses, place, 'bob'), by('exact', 8)).certificate)).toBe('bob')
    expect(person(after(reject(before, place, 'ann'), by('exact', 7)).certificate)).toBe('ann')
  })
})

describe('the share of unseen shapes to expect', () => {
  const shape = 's'

  test('is that of its proof, and stays until there is one', () => {
    const { certificate } = after(opened({ baseline: 0.5, strata: [stratum('label', 68)] }), seen('label', { shape }))
    expect(certificate.shapes).toMatchObject({ baseline: 0.5, taught: { s: 1 } })
    expect(after(certificate, seen('label', { shape })).certificate.shapes).toMatchObject({ baseline: 0, taught: { s: 2 } })
  })

  test('is not changed by what is refuted, and audits teach no shape', () => {
    const refuted = after(opened({ baseline: 0.5, strata: [stratum('label', 1, { k: 0 })] }), seen('label', { shape, agreed: false }))
    expect(refuted.changes).toMatchObject([{ kind: 'refuted' }])
    expect(refuted.certificate.shapes.baseline).toBe(0.5)
    const audited = after(opened({ strata: [proven('label', 70)] }), seen('label', { shape, kind: 'audited' }))
    expect([audited.find('label')?.audits.audits, audited.certificate.shapes.taught]).toEqual([1, {}])
  })

  test('is passed by the sixteenth where none is usual: what is proven is open again, and nothing else', () => {
    const strata = [proven('label', 70), stratum('find', 5), rejected('send', 9)]
    const fifteen = after(opened({ strata }), ...Array.from({ length: 15 }, () => unseen(true)))
    expect([fifteen.certificate.strata, fifteen.changes]).toEqual([strata, []])
    const { certificate, changes } = after(fifteen.certificate, unseen(true))
    expect(certificate.strata).toMatchObject([{ state: 'open', n: 0, drifts: 1 }, strata[1] ?? {}, strata[2] ?? {}])
    expect(changes).toEqual([{ kind: 'shapes_changed', reason: 'more of the events than before have an unseen shape' }])
  })
})

describe('what a person rejected', () => {
  test('is known by its act, and by all acts where an earlier version named none', () => {
    const { act: _act, ...old } = rejected('label', 9)
    expect(rejectedStrata({ strata: [rejected('tag', 9), old] }).map(({ act }) => act)).toEqual(['tag', REST])
  })

  const obstacleBeside = (all: Stratum) => {
    const certificate = opened({ least: least(0.99), strata: [proven('label', 400), all] })
    return obstacle(certificate, { event_type: 'mail', risk: 'outside', act: 'label', at: 1, teacher })
  }

  test('as all acts lets none of them act', () => {
    expect(obstacleBeside(rejected(REST, 9))).toBe('ann rejected its action on mail')
  })

  test.each<[string, Partial<Stratum>]>([
    ['are refuted by what was compared', { state: 'refuted' }],
    ['are proven, and allowed by a person', { state: 'proven', person: 'ann' }],
    ['are open, and allowed by a person', { person: 'ann' }],
  ])('is not an act that is proven by itself where all acts %s', (_, more) => {
    expect(obstacleBeside(stratum(REST, 9, more))).toBeNull()
  })
})

describe('before its act is known, what acts by proof', () => {
  const strata = [stratum('tag', 5), proven('label', 400), proven('reply', 400, { risk: 'inside' })]
  const mayOn = (event_type: string, risk: Risk, of = strata) => obstacle(opened({ strata: of }), { event_type, risk, at: 1, teacher })
  const any = (event_type: string) => `0 of 0 decisions for any act on ${event_type} agreed: at least 70 more must agree`

  test('may act where any of its acts may', () => {
    expect([mayOn('mail', 'outside'), mayOn('mail', 'inside')]).toEqual([null, null])
    expect(mayOn('mail', 'outside', strata.slice(0, 1))).toBe('5 of 5 decisions for tag on mail agreed: at least 65 more must agree')
  })

  test('may not on another type or at another risk, and no act is named', () => {
    expect([mayOn('note', 'outside'), mayOn('mail', 'final')]).toEqual([any('note'), any('mail')])
  })

  test('may on the types beyond the first fifty where it is proven for them together', () => {
    const types = Array.from({ length: MOST_TYPES }, (_, type) => stratum('label', 1, { event_type: `type${type}` }))
    expect(mayOn('another', 'outside', [...types, proven('label', 400, { event_type: REST })])).toBeNull()
  })
})

describe('a comparison', () => {
  test('proves acts of its own type and risk alone, each once', () => {
    const others = [stratum('tag', 90, { event_type: 'note' }), stratum('tag', 90, { risk: 'inside' })]
    const { find, changes } = after(opened({ strata: [proven('label', 70), stratum('tag', 69), ...others] }), seen('tag'))
    const reason = '70 of 70 decisions for tag on mail agreed'
    expect(changes).toEqual([{ kind: 'proven', event_type: 'mail', risk: 'outside', act: 'tag', reason }])
    expect([find('tag', 'note')?.state, find('tag', 'mail', 'inside')?.state]).toEqual(['open', 'open'])
  })

  test('adds nothing to all acts that are refuted together', () => {
    const all = stratum(REST, 10, { k: 2, state: 'refuted' })
    const { find } = after(opened({ least: least(0.99), strata: [all, stratum('label', 118)] }), seen('label'))
    expect([find(REST), find('label')?.n]).toEqual([all, 119])
  })
})

describe('an audit', () => {
  const judged = (...strata: Stratum[]) => opened({ least: least(0.99), strata })

  test('counts for all acts together if the act was proven with them, and not if by itself', () => {
    const before = judged(proven(REST, 358), proven('tag', 118), proven('label', 400))
    const auditsAfter = (act: string) => {
      const { find } = after(before, disagrees(act))
      return [find(REST)?.audits.audits, find(act)?.audits.audits]
    }
    expect([auditsAfter('tag'), auditsAfter('label')]).toEqual([
      [1, 1],
      [0, 1],
    ])
  })

  test('takes back no rejection of all acts', () => {
    const all = rejected(REST, 358)
    const { find } = after(judged(all, proven('tag', 118)), ...Array.from({ length: 6 }, () => disagrees('tag')))
    expect([find(REST), find('tag')?.state]).toEqual([all, 'open'])
  })

  test('that is an alarm for one act alone leaves the others', () => {
    const { find, changes } = after(judged(proven(REST, 358), proven('tag', 118, doubtful), proven('label', 118)), disagrees('tag'))
    const reason = '5 of 11 decisions for tag on mail since its proof disagreed'
    expect(changes).toEqual([{ kind: 'drifted', event_type: 'mail', risk: 'outside', act: 'tag', reason }])
    expect([find('tag'), find('label')]).toMatchObject([{ state: 'open', n: 0, drifts: 1, audits: emptyCusum() }, { state: 'proven' }])
  })

  test('that is an alarm for all acts together opens those that were proven with them, and nothing else', () => {
    const shared = [proven('tag', 118), proven('label', 118)]
    const others = [
      proven('move', 400),
      rejected('send', 118),
      stratum('find', 50),
      proven(REST, 358, { event_type: 'note' }),
      proven('label', 118, { event_type: 'note' }),
      proven('label', 118, { risk: 'final' }),
    ]
    const { find, changes } = after(judged(proven(REST, 358, doubtful), ...shared, ...others), disagrees('tag'))
    const reason = '5 of 11 decisions for all acts together on mail since its proof disagreed'
    expect(changes).toEqual([{ kind: 'drifted', event_type: 'mail', risk: 'outside', act: REST, reason }])
    for (const act of [REST, 'tag', 'label']) expect(find(act)).toMatchObject({ state: 'open', n: 0, drifts: 1 })
    for (const one of others) expect(find(one.act, one.event_type, one.risk)).toEqual(one)
  })

  test('of what is not proven is in no doubt', () => {
    const inDoubt = (state: Stratum['state']) => doubtIn(opened(), stratum('label', 70, { state, ...doubtful }))
    expect([inDoubt('open'), inDoubt('refuted'), inDoubt('proven')]).toEqual([
      null,
      null,
      expect.stringMatching(/^4 of 10 decisions since its proof disagreed: at least \d+ more must agree$/),
    ])
  })
})

describe('a disagreement that the slow path does not repeat', () => {
  const retracts = (act: string, of: 'comparison' | 'audit'): Observation => ({
    kind: 'retracted',
    of,
    event_type: 'mail',
    risk: 'outside',
    act,
    seq: 2,
    at: 2,
    counted_at: 2,
    teacher,
  })
  const after = (certificate: Certificate, ...observed: Observation[]): Certificate =>
    observed.reduce((known, one) => proceed(known, one).certificate, certificate)
  const of = ({ strata }: Certificate, act: string) => strata.find((one) => one.act === act)

  test('counts as an agreement of its act and of all acts together', () => {
    const by_all = opened({ least: least(0.99) })
    const [slipped, agreed] = [false, true].map((is) => after(by_all, seen('label', { agreed: is })))
    const retracted = after(slipped as Certificate, retracts('label', 'comparison'))
    expect([of(retracted, 'label'), of(retracted, REST)]).toEqual([of(agreed as Certificate, 'label'), of(agreed as Certificate, REST)])
  })

  test('completes a proof that it alone held up, and opens an act again that it alone refuted', () => {
    const held_up = opened({ strata: [stratum('label', 70, { k: 69 })] })
    expect(of(after(held_up, retracts('label', 'comparison')), 'label')).toMatchObject({ state: 'proven', k: 70 })
    const refuted = after(opened(), seen('label', { agreed: false }), seen('label', { agreed: false }))
    expect(of(refuted, 'label')).toMatchObject({ state: 'refuted' })
    expect(of(after(refuted, retracts('label', 'comparison')), 'label')).toMatchObject({ state: 'open', n: 2, k: 1 })
  })

  test('is in counts that begin with what was foreseen, by the time: places of the log have other numbers', () => {
    const foreseen = opened({ strata: [stratum('label', 70, { k: 69, from: { seq: 900, at: 1 }, to: { seq: 2, at: 2 } })] })
    expect(of(after(foreseen, retracts('label', 'comparison')), 'label')).toMatchObject({ k: 70 })
  })

  test('changes nothing in counts that began after it, or that had ended before it', () => {
    const reopened = opened({ strata: [stratum('label', 5, { k: 4, drifts: 1, from: { seq: 3, at: 3 }, to: { seq: 9, at: 9 } })] })
    expect(proceed(reopened, retracts('label', 'comparison')).changes).toEqual([])
    const all = stratum(REST, 200, { k: 150, state: 'refuted', to: { seq: 1, at: 1 } })
    const ended = opened({ least: least(0.99), strata: [all, stratum('label', 70, { k: 69 })] })
    const retracted = after(ended, retracts('label', 'comparison'))
    expect([of(retracted, 'label')?.k, of(retracted, REST)]).toEqual([70, all])
  })

  test('no longer stops an act that was proven, and leaves other disagreements', () => {
    const acting = opened({ strata: [proven('label', 70)] })
    const once = after(acting, disagrees('label'))
    const twice = after(once, disagrees('label'))
    const left = after(twice, retracts('label', 'audit'))
    expect(of(left, 'label')?.audits).toMatchObject({ disagreed: 1, sum: of(once, 'label')?.audits.sum })
    expect(of(after(left, retracts('label', 'audit')), 'label')?.audits).toMatchObject({ disagreed: 0, sum: 0 })
  })

  test('changes nothing once a drift has forgotten it, or a person has rejected the act', () => {
    const drifted = opened({ strata: [stratum('label', 0, { drifts: 1 })] })
    expect(proceed(drifted, retracts('label', 'audit')).changes).toEqual([])
    expect(proceed(drifted, retracts('label', 'comparison')).changes).toEqual([])
    const no = opened({ strata: [{ ...rejected('label', 70), k: 69 }] })
    expect(of(after(no, retracts('label', 'comparison')), 'label')).toMatchObject({ state: 'refuted' })
  })
})
