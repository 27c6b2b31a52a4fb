import { describe, expect, test } from 'vitest'
import type { Stratum } from '../../../src/contract/certificate.ts'
import { freshStratum } from '../../../src/evidence/strata.ts'
import type { LearnedReflex } from '../../../src/features/learning/reflexes/write.ts'
import { findingsOf, type Find, type RegisteredReflex } from '../../../src/features/learning/run/findings.ts'
import { inProof, isWorthProof, offerRefusal, type Offer } from '../../../src/features/learning/run/policy.ts'

const offer = (forecast: number): Offer => ({ strata: ['tool a'], reflexes: [], forecast })

const agreement = 0.99
const counts = (k: number, n = k) => [{ n, k }]
type Known = Parameters<typeof offerRefusal>[1]['known'][number]
const version = (forecast: number, compared: Known['compared'] = []): Known => ({ forecast, compared })

test.each([
  ['leaves one that takes as many', 0.8, 0.8, true, 'a version that would take 80 % is being proved'],
  ['leaves one that takes more', 0.8, 0.86, true, 'a version that would take 86 % is being proved'],
  ['replaces one that takes less', 0.8, 0.77, true, null],
  ['leaves one with comparisons of its own, if nothing was foreseen', 0.8, 0.6, false, 'a version that would take 60 % is being proved'],
  ['replaces that, too, if it takes much more', 0.8, 0.54, false, null],
])('a later version %s', (_, forecast, known, foreseen, reason) => {
  const refusal = offerRefusal(offer(forecast), { known: [version(known)], foreseen: foreseen ? [] : null, agreement })
  expect(refusal?.split('; ')[1] ?? null).toBe(reason)
})

test.each([
  // At 0.99, 358 agreements are a proof, and 606 with one disagreement.
  ['replaces one that errs, if its foreseen comparisons are much nearer to a proof', 0.9, counts(230), counts(200, 201), true],
  ['leaves one that is as near', 0.9, counts(230), counts(200), false],
  ['leaves one that takes much more', 0.8, counts(230), counts(200, 201), false],
  ['leaves one that has proven all it needs', 0.9, counts(358), counts(600), false],
  ['leaves one that lacks little', 0.9, counts(358), counts(345), false],
  ['leaves one, if nothing was foreseen', 0.9, null, counts(200, 201), false],
])('a later version %s', (_, forecast, foreseen, compared, replaces) => {
  expect(offerRefusal(offer(forecast), { known: [version(0.94, compared)], foreseen, agreement }) === null).toBe(replaces)
})

test('a later version leaves the one that takes the most, wherever that is among those in proof', () => {
  const known = [version(0.8), version(0.95, counts(200, 201))]
  expect(offerRefusal(offer(0.78), { known, foreseen: counts(230), agreement })).toContain('95 % is being proved')
})

test('two offers do not replace each other for ever: the one that takes more waits for the one that is nearer', () => {
  const refusal = (known: Known, forecast: number, compared: Known['compared']) =>
    offerRefusal(offer(forecast), { known: [known], foreseen: compared, agreement })
  const [more, nearer] = [counts(200, 201), counts(250)]
  expect(refusal(version(0.94, more), 0.88, nearer)).toBeNull()
  expect(refusal(version(0.88, nearer), 0.94, more)).toContain('is being proved')
  // Much more is worth a later proof.
  expect(refusal(version(0.6, nearer), 0.94, more)).toBeNull()
})

test('a later version replaces one that has an act refuted, however much that would take', () => {
  const stratum = (act: string, more: Partial<Stratum> = {}): Stratum => ({
    ...freshStratum({ event_type: 'mail', risk: 'outside', act }, { seq: 1, at: 1 }),
    ...more,
  })
  const refusal = (...strata: Stratum[]) =>
    offerRefusal(offer(0.8), { known: [inProof({ forecast: 0.8 }, { strata })], foreseen: [], agreement })
  expect(refusal(stratum('refund'))).toContain('is being proved')
  expect(refusal(stratum('refund'), stratum('nothing', { state: 'refuted' }))).toBeNull()
  const refuted = inProof({ forecast: 0.8 }, { strata: [stratum('nothing', { state: 'refuted' })] })
  expect(offerRefusal(offer(0.2), { known: [refuted], foreseen: null, agreement })).toBeNull()
  // A person's rejection holds for later versions, too.
  expect(refusal(stratum('refund'), stratum('nothing', { state: 'refuted', person: 'ann' }))).toContain('is being proved')
  expect(inProof({ forecast: 0.8 }, undefined)).toEqual({ forecast: 0.8, compared: [] })
  const foreseen = counts(120)
  expect(inProof({ forecast: 0.8, foreseen }, undefined)).toEqual({ forecast: 0.8, foreseen, compared: foreseen })
})

test('a version in proof has the comparisons of its acts, and what was foreseen of those that have none yet', () => {
  const place = { seq: 1, at: 1 }
  const foreseen = [
    { event_type: 'mail', act: 'refund', n: 80, k: 80, from: place, to: place },
    { event_type: 'mail', act: 'label', n: 50, k: 49, from: place, to: place },
  ]
  const own = { ...freshStratum({ event_type: 'mail', risk: 'outside', act: 'refund' }, place), n: 90, k: 90 }
  const { compared } = inProof({ forecast: 0.8 }, { strata: [own, { ...own, act: '*' }], foreseen })
  expect(compared.map(({ n, k }) => [n, k])).toEqual([
    [90, 90],
    [50, 49],
  ])
})

test('what would take little is not proved', () => {
  const refusal = (forecast: number) => offerRefusal(offer(forecast), { known: [], foreseen: [], agreement })
  expect(refusal(0.1)).toBe('it would take only 10 % of such decisions')
  expect(refusal(0.2)).toBeNull()
})

test.each([
  [500, 0.84, 0.86],
  [1000, 0.57, 0.58],
  [1500, 0.29, 0.31],
  [5000, 0.29, 0.31],
])('a first version is content with less, the longer it has waited: after %d decisions', (episodes, less, enough) => {
  expect([isWorthProof(less, episodes), isWorthProof(enough, episodes)]).toEqual([false, true])
})

describe('of what a run learned', () => {
  const [DAMAGED, LATE, NOTHING] = ['tool refund {"reason":"damaged"}', 'tool refund {"reason":"late"}', 'nothing']
  type Taken = readonly [decision: string, agreed: number, of: number]
  const heldOut = ([, agreed, n]: Taken) => ({ n, covered: agreed, agreed, hits: [], misses: [] })
  const sumOf = (taken: readonly Taken[]): Taken =>
    ['', ...([1, 2] as const).map((at) => taken.reduce((sum, one) => sum + one[at], 0))] as never

  const reflexOf = (by: LearnedReflex['by'], id: string, taken: readonly Taken[]): LearnedReflex => ({
    id,
    by,
    title: '',
    decision: taken.map(([decision]) => decision).join(),
    decisions: taken.map(([decision]) => decision),
    acts: [],
    names: [],
    code: '',
    evidence: { episodes: 0, taught: [], exceptions: 0, held_out: heldOut(sumOf(taken)) },
  })
  const tableOf = (...taken: Taken[]) => reflexOf('table', 'learned.table', taken)
  const rulesOf = (id: string, ...taken: Taken[]) => reflexOf('rules', `learned.${id}`, taken)

  function find({ reflexes, judged, proved = [] }: { reflexes: LearnedReflex[]; judged: readonly Taken[]; proved?: RegisteredReflex[] }) {
    const learned = { episodes: [], reflexes, refused: [], disputed: [], reach: [], foreseenOf: () => null }
    const held = judged.map((one) => ({ decision: one[0], held_out: heldOut(one) }))
    const { finds, rejected } = findingsOf(
      { ...learned, judged: held },
      { proved: proved.map((one) => inProof(one, undefined)), worth: true, agreement },
    )
    const found = Object.fromEntries(finds.map(({ version }) => [version.name, version.replaces.map(({ id }) => id)]))
    return { finds, found, rejected }
  }
  const registered = ({ version, strata, decisions, forecast }: Find, more: Partial<RegisteredReflex> = {}): RegisteredReflex => {
    return { id: `${version.name}.of-a-scope`, version: 1, strata, ...(decisions && { decisions }), forecast, run_id: 'before', ...more }
  }

  const damaged: Taken = [DAMAGED, 290, 300]
  const late: Taken = [LATE, 40, 40]
  const nothing: Taken = [NOTHING, 280, 300]
  const both = { reflexes: [rulesOf('late', late), tableOf(damaged, nothing)], judged: [damaged, late, nothing] }

  test('rules beside a table are judged by the decisions that it leaves to them', () => {
    const { found, finds, rejected } = find(both)
    expect([Object.keys(found), rejected]).toEqual([['learned.late', 'learned.table'], []])
    expect(finds.map(({ forecast }) => forecast)).toEqual([1, 570 / 600])
    // Decisions that neither of them takes are left to both.
    const lost: Taken = [`tool refund {"reason":"lost"}`, 0, 300]
    expect(find({ ...both, judged: [...both.judged, lost] }).rejected).toMatchObject([
      { what: LATE, reason: 'it would take only 12 % of such decisions' },
    ])
  })

  test('a table beside rules for the same tool is another offer, judged by what they leave', () => {
    const few: Taken = [DAMAGED, 40, 40]
    const many: Taken = [LATE, 290, 300]
    const { finds } = find({ reflexes: [rulesOf('late', many), tableOf(few)], judged: [few, many] })
    expect(finds.map(({ forecast }) => forecast)).toEqual([290 / 300, 1])
  })

  test('rules beside a table do not wait for a version of it, which takes none of their decisions', () => {
    const [, table] = find({ ...both, reflexes: [rulesOf('late', late), tableOf(damaged, nothing)] }).finds as [Find, Find]
    const { found, rejected } = find({ ...both, proved: [registered(table)] })
    expect(found).toEqual({ 'learned.late': [] })
    expect(rejected.map(({ reason }) => reason)).toEqual([
      'it would take 95 % of such decisions; a version that would take 95 % is being proved',
    ])
  })

  test('rules beside a table wait for a version that takes their decisions, also if only its strata are known', () => {
    const [rules] = find(both).finds as [Find, Find]
    expect(Object.keys(find({ ...both, proved: [registered(rules)] }).found)).toEqual(['learned.table'])
    const { decisions: _, ...older } = registered(rules)
    expect(Object.keys(find({ ...both, proved: [older] }).found)).toEqual(['learned.table'])
    // No offer has these decisions any more.
    const changed = registered(rules, { id: 'learned.other.of-a-scope', decisions: ['another'] })
    expect(Object.keys(find({ ...both, proved: [changed] }).found)).toEqual(['learned.table'])
  })

  test('a version in proof stays for an act whose later version is refused', () => {
    const strata = ['nothing', 'tool refund']
    const first: RegisteredReflex = { id: 'learned.table.of-a-scope', version: 1, strata, forecast: 0, run_id: 'before' }
    const rules = [rulesOf('late', late), rulesOf('nothing', [NOTHING, 30, 300])]
    const { found, rejected } = find({ reflexes: rules, judged: [late, [NOTHING, 30, 300]], proved: [first] })
    expect(rejected).toMatchObject([{ what: NOTHING, reason: 'it would take only 10 % of such decisions' }])
    expect(found).toEqual({ 'learned.late': [] })
    const better = [rulesOf('late', late), rulesOf('nothing', nothing)]
    expect(find({ reflexes: better, judged: [late, nothing], proved: [first] }).found['learned.late']).toEqual([first.id])
  })
})
