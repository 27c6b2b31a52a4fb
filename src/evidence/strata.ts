import { agreementOfAll } from '../contract/agreement.ts'
import type { Certificate, CountsOfOthers, Stratum } from '../contract/certificate.ts'
import type { Risk } from '../contract/risk.ts'
import { countSigns } from './branches.ts'
import { emptyCusum } from './drift.ts'
import { type Bar, barAt, boundsOf, neededAt, type ProofVerdict, verdictAt } from './e-process.ts'

/** Further event types share it; the stratum of all acts of a type and risk has it as its act. */
export const REST = '*'
/** Event types that are judged by themselves. */
export const MOST_TYPES = 50
/** Beyond these, further acts are judged for all event types together; twice as many is the end. */
const MOST_STRATA = 100

export type StratumPlace = { event_type: string; risk: Risk; act: string }
type Judging = Pick<Certificate, 'least' | 'noise'>
type Counts = Pick<Stratum, 'n' | 'k'>
type JudgedStrata = Judging & Pick<Certificate, 'strata' | 'foreseen' | 'others'>

export const isSame = (one: StratumPlace, { event_type, risk, act }: StratumPlace): boolean =>
  one.event_type === event_type && one.risk === risk && one.act === act

export const freshStratum = (where: StratumPlace, place: Stratum['from']): Stratum => ({
  event_type: where.event_type,
  risk: where.risk,
  act: where.act,
  state: 'open',
  n: 0,
  k: 0,
  from: place,
  to: place,
  person: null,
  audits: emptyCusum(),
  drifts: 0,
})

/** The stratum with what was foreseen of its act, which is part of a new one alone. */
function begun(stratum: Stratum, foreseen: Certificate['foreseen'] = []): Stratum {
  const { event_type, act } = stratum
  const known = foreseen.find((one) => one.event_type === event_type && one.act === act)
  if (!known) return stratum
  const { n, k, from, to, signs } = known
  return { ...stratum, n, k, from, to, ...(signs && { signs }) }
}

/** The stratum of an act, which may be new; null if a certificate has no room for it. */
export function stratumOf(
  { strata, foreseen }: Pick<Certificate, 'strata' | 'foreseen'>,
  where: StratumPlace & { seq: number; at: number },
): Stratum | null {
  const { event_type, seq, at } = where
  const types = new Set(strata.map((one) => one.event_type))
  const type = types.has(event_type) || types.size < MOST_TYPES ? event_type : REST
  const known = strata.find((one) => isSame(one, { ...where, event_type: type }))
  if (known) return known
  const rest = { ...where, event_type: strata.length < MOST_STRATA ? type : REST }
  const shared = strata.find((one) => isSame(one, rest))
  if (shared) return shared
  return strata.length < 2 * MOST_STRATA ? begun(freshStratum(rest, { seq, at }), foreseen) : null
}

/** The stratum of all acts of the same type and risk. */
export const togetherOf = ({ strata }: Pick<Certificate, 'strata'>, { event_type, risk, from }: Stratum): Stratum =>
  strata.find((one) => isSame(one, { event_type, risk, act: REST })) ?? freshStratum({ event_type, risk, act: REST }, from)

const NONE: Counts = { n: 0, k: 0 }
const sumOf = (all: readonly Counts[]): Counts => all.reduce((sum, { n, k }) => ({ n: sum.n + n, k: sum.k + k }), NONE)

/**
 * True if acts of one risk count among all acts of another. What is done inside is proven by what
 * reaches outside, too, and not the other way round: to ignore events often proves no call.
 */
const countsFor = (one: Risk, risk: Risk): boolean => one === risk || risk === 'inside'

/** The counts of the other learned reflexes of the scope; zeros where there are none. */
const othersOf = ({ others = [] }: JudgedStrata, risk: Risk): Pick<CountsOfOthers, 'all' | 'proven'> =>
  others.find((one) => one.risk === risk) ?? { all: NONE, proven: NONE }

const countsOfAllIn = (strata: readonly Stratum[], risk: Risk): Counts =>
  sumOf(strata.filter((one) => one.act === REST && countsFor(one.risk, risk)))

/** The counts of all acts of a risk: of all event types, and of other learned reflexes. */
export const countsOfAll = (judged: JudgedStrata, { risk }: Pick<Stratum, 'risk'>): Counts =>
  sumOf([countsOfAllIn(judged.strata, risk), othersOf(judged, risk).all])

/** The counts that certificates add to the proof of another one's acts. */
export function countsOfOthers(others: readonly Pick<Certificate, 'strata'>[], risk: Risk, judging: Judging): CountsOfOthers {
  const all = others.map(({ strata }) => countsOfAllIn(strata, risk))
  const proven = others.map(({ strata }) => countsOfProven({ ...judging, strata }, risk))
  return { risk, all: sumOf(all), proven: sumOf(proven) }
}

/** The certificate with the counts of others as they are now. */
export const withOthers = <Of extends Pick<Certificate, 'others'>>(before: Of, now: CountsOfOthers | undefined): Of =>
  now ? { ...before, others: [...(before.others ?? []).filter(({ risk }) => risk !== now.risk), now] } : before

/** The certificate without what others have proven to a floor that is higher now. */
export const withoutFloors = <Of extends Pick<Certificate, 'others'>>(before: Of): Of =>
  before.others ? { ...before, others: before.others.map((one) => ({ ...one, proven: NONE })) } : before

export const withStratum = <Of extends Pick<Certificate, 'strata'>>(before: Of, stratum: Stratum): Of => ({
  ...before,
  strata: [...before.strata.filter((one) => !isSame(one, stratum)), stratum],
})

type CountedDecision = { seq: number; at: number; agreed: boolean; signs?: readonly string[] | undefined; again?: boolean | undefined }

/** True if another reflex has counted the agreement among all acts: it counts there once. */
export const isAgain = ({ agreed, again }: Pick<CountedDecision, 'agreed' | 'again'>): boolean => agreed && again === true

export const counted = ({ signs: known, ...before }: Stratum, { seq, at, agreed, signs, again }: CountedDecision): Stratum => ({
  ...before,
  n: before.n + 1,
  k: before.k + (agreed ? 1 : 0),
  from: before.n === 0 ? { seq, at } : before.from,
  to: { seq, at },
  ...(isAgain({ agreed, again }) && { again: (before.again ?? 0) + 1 }),
  ...(before.act !== REST && signs && (known || before.n === 0) && { signs: countSigns(known ?? {}, signs) }),
})

/** With what was foreseen of an act, whose comparisons begin. */
export const joined = (all: Stratum, { n, k }: Counts): Stratum => ({ ...all, n: all.n + n, k: all.k + k })

export const reopened = ({ branch: _branch, signs: _signs, again: _again, ...stratum }: Stratum): Stratum => ({
  ...stratum,
  state: 'open',
  n: 0,
  k: 0,
  person: null,
  audits: emptyCusum(),
  drifts: stratum.drifts + 1,
})

const compared = ({ n, k }: Counts) => ({ agreed: k, disagreed: n - k })

/** The test of counts against a bound, by at least as many decisions as the setting demands. */
function verdictOn(bound: number, counts: Counts, { least, noise }: Judging): ProofVerdict {
  const verdict = verdictAt(barAt(bound, noise), compared(counts))
  return verdict === 'proven' && counts.n < least.support ? 'open' : verdict
}

function lacking(bound: number, counts: Counts, { least, noise }: Judging): number {
  return Math.max(neededAt(barAt(bound, noise), compared(counts)), least.support - counts.n, 0)
}

export type CountsOfActs = readonly Counts[]

/** The agreements that acts lack to prove the bound of all together, if nothing more disagrees. */
export const lackingTogether = (judging: Judging, acts: CountsOfActs): number =>
  lacking(agreementOfAll(judging.least.agreement), sumOf(acts), judging)

/** True if fewer agreements are needed than with no comparisons at all. */
export function speaksFor(judging: Judging, stratum: Counts & Pick<Stratum, 'act'>): boolean {
  const { alone, together } = boundsOf(judging.least.agreement, stratum.act)
  const bound = stratum.act === REST ? (together ?? alone) : alone
  return lacking(bound, stratum, judging) < lacking(bound, { n: 0, k: 0 }, judging)
}

/**
 * True if the next comparison of an act counts among all acts together: unless those before it
 * speak against the act.
 */
export const joins = (judging: Judging, stratum: Stratum): boolean =>
  boundsOf(judging.least.agreement, stratum.act).together !== null && (stratum.k === stratum.n || speaksFor(judging, stratum))

/** True if an act may act with the others: it is proven to the floor by itself. */
export function countsTogether(judging: Judging, stratum: Stratum): boolean {
  const { alone, together } = boundsOf(judging.least.agreement, stratum.act)
  return together !== null && verdictOn(alone, stratum, judging) === 'proven'
}

/** True if the act has proved by itself all that it has to. */
export function isProvenAlone(judging: Judging, stratum: Stratum): boolean {
  const { alone, together } = boundsOf(judging.least.agreement, stratum.act)
  return verdictOn(together ?? alone, stratum, judging) === 'proven'
}

/** The counts of a stratum among several, each decision once. */
const addedBy = ({ n, k, again = 0 }: Stratum): Counts => ({ n: Math.max(0, n - again), k: Math.max(0, k - again) })

/** The counts of all acts of a risk that are proven to the floor by themselves. */
const countsOfProven = (judged: JudgedStrata, risk: Risk): Counts =>
  sumOf(
    judged.strata
      .filter((one) => one.act !== REST && countsFor(one.risk, risk) && one.state !== 'refuted' && countsTogether(judged, one))
      .map(addedBy),
  )

/**
 * The counts of acts that have reached the floor, of the event type and risk alone and of all that
 * the scope has learned. Either of them proves.
 */
function floorsFor(judged: JudgedStrata, { event_type, risk }: Stratum): Counts[] {
  const of_type = judged.strata.filter((one) => one.event_type === event_type && one.risk === risk)
  return [countsOfProven({ ...judged, strata: of_type }, risk), sumOf([countsOfProven(judged, risk), othersOf(judged, risk).proven])]
}

/** Own agreements that outweigh one own disagreement, where other comparisons were foreseen. */
const OUTWEIGH = 20

/** The comparisons of the version itself; null if they are all that it has. */
function ownOf({ foreseen = [] }: JudgedStrata, { event_type, act, drifts, left, n, k }: Stratum): Counts | null {
  const known = drifts === 0 && !left && foreseen.find((one) => one.event_type === event_type && one.act === act)
  return known ? { n: n - known.n, k: k - known.k } : null
}

/** The verdict, which a version's own comparisons hold back or refute if they speak against it. */
function withOwn(bound: number, judged: JudgedStrata, stratum: Stratum): ProofVerdict {
  const verdict = verdictOn(bound, stratum, judged)
  const own = ownOf(judged, stratum)
  if (!own) return verdict
  if (verdictOn(bound, own, judged) === 'refuted') return 'refuted'
  return verdict === 'proven' && own.k < OUTWEIGH * (own.n - own.k) ? 'open' : verdict
}

/** The verdict on all acts of a type, which others may prove and never refute. */
function verdictOnAll(bound: number, judged: JudgedStrata, all: Stratum): ProofVerdict {
  const own = verdictOn(bound, all, judged)
  const counts = countsOfAll(judged, all)
  return own === 'open' && counts.n > all.n && verdictOn(bound, counts, judged) === 'proven' ? 'proven' : own
}

/**
 * The verdict on a stratum, from counts alone. An act may act if it is proven by itself to its own
 * bound, or to its floor where all acts together are proven to theirs: all that were
 * compared, and also those alone that have reached the floor, of the type or of all that the scope
 * has learned. What acts rarely never acts on the proof of the frequent acts alone.
 */
export function verdictIn(judged: JudgedStrata, stratum: Stratum): ProofVerdict {
  const { alone, together } = boundsOf(judged.least.agreement, stratum.act)
  if (stratum.act === REST) return verdictOnAll(together ?? alone, judged, stratum)
  const own = withOwn(alone, judged, stratum)
  if (together === null || own !== 'proven' || isProvenAlone(judged, stratum)) return own
  const all = togetherOf(judged, stratum)
  const isProven = all.state === 'proven' || (all.state === 'open' && verdictIn(judged, all) === 'proven')
  if (!isProven) return 'open'
  return floorsFor(judged, stratum).some((counts) => verdictOn(together, counts, judged) === 'proven') ? 'proven' : 'open'
}

/** The bar of the audits of a proven stratum. */
export function barOf(judging: Judging, stratum: Stratum): Bar {
  const { alone, together } = boundsOf(judging.least.agreement, stratum.act)
  const bound = together !== null && (stratum.act === REST || isProvenAlone(judging, stratum)) ? together : alone
  return barAt(bound, judging.noise)
}

/** The bounds that a stratum has proven: by itself, and with all acts. */
export function provenBounds(judging: Judging, stratum: Stratum): { alone: number; together: number | null } {
  const { alone, together } = boundsOf(judging.least.agreement, stratum.act)
  if (together === null) return { alone, together }
  return isProvenAlone(judging, stratum) ? { alone: together, together: null } : { alone, together }
}

/** The sentence about what an open stratum lacks. */
export function openText(judged: JudgedStrata, stratum: Stratum): string {
  const { event_type, act, n, k } = stratum
  const { alone, together } = boundsOf(judged.least.agreement, stratum.act)
  const agreed = `${k} of ${n} decisions for ${act} on ${event_type} agreed`
  const own = lacking(alone, stratum, judged)
  if (together === null || own > 0) return `${agreed}: at least ${own} more must agree`
  const own_all = togetherOf(judged, stratum)
  const all = countsOfAll(judged, stratum)
  const alone_lacks = lacking(together, stratum, judged)
  const least = (proofs: readonly Counts[]): number => Math.min(...proofs.map((counts) => lacking(together, counts, judged)))
  const with_all = Math.max(own_all.state === 'proven' ? 0 : least([own_all, all]), least(floorsFor(judged, stratum)))
  const lacks = own_all.state === 'refuted' ? alone_lacks : Math.min(alone_lacks, with_all)
  return `${agreed}, ${all.k} of ${all.n} of all acts together: at least ${lacks} more must agree`
}
