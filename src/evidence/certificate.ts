import { isoDay } from '../base/time.ts'
import type { Risk } from '../contract/risk.ts'
import { agreementOfAll, DEFAULT_AGREEMENT } from '../contract/agreement.ts'
import type { Certificate, CountsOfOthers, Stratum, Teacher } from '../contract/certificate.ts'
import type { ComparedWords } from '../contract/words.ts'
import { countShape, doubt, emptyCusum, emptyShapeWindow, teachShape, type TaughtShapes, unseenShare } from './drift.ts'
import { audited, isLeft, isSuspect, testWithRest, withAudit, withoutBranch, withoutOne } from './branches.ts'
import { teachValues, noValues, type EventTraits, type TaughtValues } from './novelty.ts'
import type { ProofVerdict } from './e-process.ts'
import {
  barOf,
  counted,
  countsOfAll,
  countsTogether,
  freshStratum,
  isAgain,
  isProvenAlone,
  isSame,
  joined,
  joins,
  openText,
  provenBounds,
  reopened,
  REST,
  stratumOf,
  togetherOf,
  verdictIn,
  type CountsOfActs,
  type StratumPlace,
  withoutFloors,
  withOthers,
  withStratum,
} from './strata.ts'

const VALID_MS = 90 * 86_400_000

type Least = Certificate['least']
/** `others`: the counts for the risk of the decision. */
type When = { seq: number; at: number; teacher: Teacher; least?: Least; others?: CountsOfOthers | undefined }
/** A certificate holds for a slow path, a meaning of words, and the bounds of the settings. */
type Ground = { at: number; teacher: Teacher; replies?: string | undefined; least?: Least | undefined }
/**
 * `compared`: in shadow mode, with the actual decision; after a proof it counts as an audit.
 * `audited`: after it acted, with a dry run of the slow path or with what a person said. `shape`:
 * an event that it decided on, or a sample that stands for `weight` of them. `retracted`: the slow
 * path, asked twice more, did not repeat a disagreement, which was counted as `of`. `words`: the
 * setting by which words of a sequence were compared, and if a person must allow its own. `signs`:
 * what tells the decision from others of its act. `again`: another learned reflex of the scope was
 * compared with the same decision before.
 */
export type Observation = When &
  (
    | (StratumPlace & {
        kind: 'compared' | 'audited'
        agreed: boolean
        shape?: string | undefined
        traits?: EventTraits | undefined
        words?: ComparedWords | undefined
        signs?: readonly string[] | undefined
        again?: boolean | undefined
      })
    | { kind: 'shape'; unseen: boolean; weight?: number }
    | (StratumPlace & { kind: 'retracted'; of: 'comparison' | 'audit'; counted_at: number; signs?: readonly string[] | undefined })
  )
/** A change that the caller must follow up and log. */
export type CertificateMove =
  | (StratumPlace & { kind: 'proven' | 'refuted' | 'drifted' | 'retracted'; reason: string })
  | { kind: 'shapes_changed' | 'lapsed' | 'bounds_changed'; reason: string }

type Opening = Pick<When, 'teacher' | 'at'> &
  Partial<Pick<Certificate, 'noise' | 'least' | 'strata' | 'foreseen'>> & {
    baseline?: number
    shapes?: TaughtShapes & { values?: TaughtValues | undefined }
  }
const PROCEDURE = 'e_process'
const NO_LEAST: Least = { agreement: DEFAULT_AGREEMENT, support: 0 }

export function openCertificate(
  subject: Certificate['subject'],
  { teacher, at, noise = 0, baseline = 0, shapes = { taught: {}, rare: 0 }, least = NO_LEAST, strata = [], foreseen }: Opening,
): Certificate {
  return {
    subject,
    teacher,
    procedure: PROCEDURE,
    alpha: 0.05,
    delta: 0.05,
    noise,
    least,
    n: 0,
    k: 0,
    bound: null,
    strata,
    ...(foreseen && { foreseen }),
    shapes: { ...emptyShapeWindow(), baseline, taught: shapes.taught, rare: shapes.rare, ...(shapes.values && { values: shapes.values }) },
    issued_at: at,
    expires_at: at + VALID_MS,
    lapsed: null,
  }
}

/** The certificate after one more observation. Pure; the one that was given stays as it is. */
export function proceed(given: Certificate, seen: Observation): Proceeded {
  if (given.lapsed) return { certificate: given, changes: [] }
  const changed = teacherChange(given.teacher, seen.teacher)
  if (changed !== null) {
    const reason = `${changed} of the slow path changed`
    return { certificate: summed({ ...given, lapsed: { at: seen.at, reason } }), changes: [{ kind: 'lapsed', reason }] }
  }
  const { certificate: before, changes } = judgedBy(given, seen)
  const after = afterSeen(before, seen)
  return { ...after, changes: [...changes, ...after.changes] }
}

function afterSeen(before: Certificate, seen: Observation): Proceeded {
  if (seen.kind === 'shape') return afterShape(before, seen)
  return seen.kind === 'retracted' ? afterRetraction(before, seen) : afterDecision(before, seen)
}

type Proceeded = { certificate: Certificate; changes: CertificateMove[] }

/**
 * The certificate by the settings of now and by what others show: what was proven to lower bounds
 * is open again.
 */
function judgedBy(given: Certificate, { least, others }: { least?: Least | undefined } & Pick<When, 'others'>): Proceeded {
  if (!least || JSON.stringify(least) === JSON.stringify(given.least)) return { certificate: withOthers(given, others), changes: [] }
  const before = withOthers(isRaisedTo(least, given.least) ? withoutFloors(given) : given, others)
  const by = { ...before, least }
  const reopens = (judged: Certificate, one: Stratum): Stratum =>
    one.state !== 'proven' || verdictIn(judged, one) === 'proven' ? one : { ...one, state: 'open', person: null }
  const together = { ...by, strata: by.strata.map((one) => (one.act === REST ? reopens(by, one) : one)) }
  const strata = together.strata.map((one) => (one.act === REST ? one : reopens(together, one)))
  const isRaised = strata.some((one, place) => one !== before.strata[place])
  const reason = 'the setting learning.min_agreement or min_support changed'
  return { certificate: summed({ ...by, strata }), changes: isRaised ? [{ kind: 'bounds_changed', reason }] : [] }
}

/** False if what has reached the floor by the bounds before has reached it by these. */
const isRaisedTo = (now: Least, before: Least): boolean =>
  agreementOfAll(now.agreement) > agreementOfAll(before.agreement) || now.support > before.support

function afterDecision(before: Certificate, seen: Seen): Proceeded {
  const { words } = seen
  const same = { certificate: before, changes: [] }
  // An audit that was drawn under another setting says nothing of this proof.
  if (words && before.replies !== undefined && before.replies !== words.replies) return same
  const known = stratumOf(before, seen)
  if (!known || isLeft(known, seen.signs ?? [])) return same
  const stratum = words?.says == null ? known : saying(known, words.says)
  const opens = seen.kind === 'compared' && stratum.state === 'open'
  const after = opens ? afterComparison(before, stratum, seen) : afterAudit(before, stratum, seen)
  if (!after) return same
  const isProven = after.changes.some(({ kind }) => kind === 'proven')
  const shapes = shapesAfter(before.shapes, seen, isProven)
  return { certificate: summed({ ...after.certificate, ...(words && { replies: words.replies }), shapes }), changes: after.changes }
}

/** The stratum of an act that chooses words: whoever allowed it before has not allowed these. */
const saying = (known: Stratum, says: number): Stratum => ({
  ...known,
  says,
  person: known.says === undefined && known.state === 'proven' ? null : known.person,
})

/** A person allows a proven action, for example one that can be neither undone nor repeated. */
export const allow = (before: Certificate, where: StratumPlace, person: string): Certificate => changedAt(before, where, { person })

/**
 * Strata that a person rejected, which no later certificate proves. An earlier version named no
 * act.
 */
export const rejectedStrata = ({ strata }: { strata: readonly (Omit<Stratum, 'act'> & { act?: string })[] }): Stratum[] =>
  strata.filter(({ state, person }) => state === 'refuted' && person !== null).map((one) => ({ ...one, act: one.act ?? REST }))

/** A person rejects a proven action: it never acts. */
export const reject = (before: Certificate, where: StratumPlace, person: string): Certificate =>
  summed(changedAt(before, where, { state: 'refuted', person }))

function changedAt(before: Certificate, where: StratumPlace, change: Partial<Stratum>): Certificate {
  const stratum = stratumOf(before, { ...where, seq: 0, at: before.issued_at })
  return { ...before, strata: before.strata.map((one) => (stratum && isSame(one, stratum) ? { ...one, ...change } : one)) }
}

/** The reason why a certificate is no longer in force, or null: it is. */
export function expiry({ lapsed, teacher: before, expires_at, replies: by, procedure }: Certificate, of: Ground): string | null {
  const { at, teacher, replies } = of
  if (lapsed) return lapsed.reason
  const changed = teacherChange(before, teacher)
  if (changed !== null) return `${changed} of the slow path changed`
  if (by !== undefined && by !== replies) return 'the setting learning.replies changed'
  if (procedure !== PROCEDURE) return 'an earlier version of Reflex proved it'
  return at >= expires_at ? 'its certificate has expired' : null
}

/**
 * `act` and `risk`: undefined before they are known: any would do. `asks`: a person must allow each
 * action. `chooses`: it says words of its own choice, which one must allow.
 */
type Asked = { event_type: string; act?: string | undefined; risk?: Risk | undefined } & Ground & Asking
/** `signsOf`: of the act on the event, which few proofs ask for; null if nobody knows them. */
type Asking = { asks?: boolean; chooses?: boolean; signsOf?: (() => readonly string[] | null) | undefined }

/** The reason why it may not act on such an event by itself, or null: it may. */
export function obstacle(given: Certificate, { act, risk, ...asked }: Asked): string | null {
  const ended = expiry(given, asked)
  if (ended !== null) return ended
  const { certificate } = judgedBy(given, { least: asked.least })
  const { event_type, at } = asked
  const known = actsIn(certificate).filter(
    (one) =>
      (risk === undefined || one.risk === risk) &&
      (act === undefined || one.act === act) &&
      (one.event_type === event_type || one.event_type === REST),
  )
  const places = act === undefined || risk === undefined ? known : [{ act, risk }]
  const reasons = places.map((one) => obstacleAt(certificate, { ...asked, act: one.act, risk: one.risk }))
  if (reasons.includes(null)) return null
  return reasons[0] ?? openText(certificate, freshStratum({ event_type, risk: risk ?? 'inside', act: act ?? 'any act' }, { seq: 0, at }))
}

function obstacleAt(
  certificate: Certificate,
  { at, asks = false, chooses = false, signsOf, ...where }: StratumPlace & Ground & Asking,
): string | null {
  const { event_type, risk, act } = where
  const stratum = stratumOf(certificate, { ...where, seq: 0, at })
  if (!stratum) return `its certificate has no room for ${act} on ${event_type}`
  const together = togetherOf(certificate, stratum)
  if (together.state === 'refuted' && together.person !== null) return refusedText(together)
  const { state, person, says } = stratum
  if (state === 'refuted') return refusedText(stratum)
  if (state === 'open') return openText(certificate, stratum)
  const doubted = doubtOfAct(certificate, stratum, signsOf)
  if (doubted !== null) return `for ${act} on ${event_type} ${doubted}`
  const isAllowed = person !== null && (says !== undefined || !chooses)
  if (risk === 'final' && !isAllowed) return `its action ${act} on ${event_type} can be neither undone nor repeated: a person must allow it`
  return (asks || chooses || says !== undefined) && !isAllowed
    ? `its action ${act} on ${event_type} is proven: a person must allow it`
    : null
}

/**
 * Why a proven stratum does not act for now, or null: since its proof decisions disagreed, and
 * fewer have agreed again than it takes. It stops no other act.
 */
export function doubtIn(certificate: Certificate, stratum: Stratum): string | null {
  const { audits, branch } = stratum
  const all = branch && testWithRest(stratum, branch, barOf(certificate, stratum))
  return doubtOf(certificate, stratum, audits) ?? (all ? doubtOf(certificate, stratum, all) : null)
}

/** Why some of its acts, which share what disagreed, do not act for now. */
function doubtInBranch(certificate: Certificate, stratum: Stratum): string | null {
  const doubted = stratum.branch ? doubtOf(certificate, stratum, stratum.branch.audits) : null
  return doubted === null ? null : `${doubted}, of decisions like this one`
}

function doubtOf(certificate: Certificate, stratum: Stratum, { sum, audits, disagreed }: Stratum['audits']): string | null {
  const needed = stratum.state === 'proven' ? doubt({ sum }, barOf(certificate, stratum)) : 0
  if (needed === 0) return null
  const seen = disagreed === 0 ? 'earlier decisions' : `${disagreed} of ${audits} decisions since its proof`
  return `${seen} disagreed: at least ${needed} more must agree`
}

/** The doubt that stops an act with these signs; without them, the one that stops all of them. */
function doubtOfAct(certificate: Certificate, stratum: Stratum, signsOf: Asking['signsOf']): string | null {
  const doubted = doubtOf(certificate, stratum, stratum.audits)
  if (doubted !== null || !signsOf || !(stratum.branch || stratum.left)) return doubted
  const own = signsOf()
  if (own === null ? stratum.left : isLeft(stratum, own)) return LEFT
  return own === null || isSuspect(stratum, own) ? doubtInBranch(certificate, stratum) : null
}

const LEFT = 'decisions like this one disagreed since its proof, and are left to the slow path'

/**
 * Since when, in ms, and why what acts by proof acts on nothing; null: it acts on something. A time
 * of null is unknown.
 */
export function idleSince(certificate: Certificate, at: number): { at: number | null; reason: string } | null {
  const { lapsed, expires_at } = certificate
  if (lapsed) return lapsed
  if (at >= expires_at) return { at: expires_at, reason: 'its certificate has expired' }
  const strata = actsIn(certificate)
  const proven = strata.filter(({ state }) => state === 'proven')
  const doubts = proven.map((stratum) => doubtOf(certificate, stratum, stratum.audits))
  if (doubts.includes(null)) return null
  const [stratum] = strata
  if (doubts[0] != null) return { at: null, reason: `for ${proven[0]?.act} on ${proven[0]?.event_type} ${doubts[0]}` }
  if (!stratum) return { at: null, reason: 'it was never compared with a decision' }
  return { at: null, reason: stratum.state === 'refuted' ? refusedText(stratum) : openText(certificate, stratum) }
}

/** The strata of single acts. */
export const actsIn = ({ strata }: Pick<Certificate, 'strata'>): Stratum[] => strata.filter(({ act }) => act !== REST)

/** The comparisons of its acts, with what was foreseen of those that have none of their own yet. */
export function comparisonsIn({ strata, foreseen = [] }: Pick<Certificate, 'strata' | 'foreseen'>): CountsOfActs {
  const acts = actsIn({ strata })
  return [...acts, ...foreseen.filter((one) => !isCompared(acts, one))]
}

/**
 * True if nothing of it is proven or may still be. An act that was foreseen and not yet compared
 * may be: a table has several, and the first one that disagrees does not end the others.
 */
export function isRefuted({ strata, foreseen = [] }: Pick<Certificate, 'strata' | 'foreseen'>): boolean {
  const acts = actsIn({ strata })
  return acts.length > 0 && acts.every(({ state }) => state === 'refuted') && foreseen.every((one) => isCompared(acts, one))
}
type StratumOfAct = Pick<StratumPlace, 'event_type' | 'act'>
const isCompared = (acts: readonly Stratum[], { event_type, act }: StratumOfAct): boolean =>
  acts.some((one) => one.act === act && (one.event_type === event_type || one.event_type === REST))

const refusedText = ({ event_type, act, n, k, person }: Stratum): string =>
  person === null
    ? `only ${k} of ${n} decisions for ${act} on ${event_type} agreed`
    : `${person} rejected its action${act === REST ? '' : ` ${act}`} on ${event_type}`

/** The certificate in sentences, for people. */
export function why(certificate: Certificate): string[] {
  const { subject, strata, lapsed, expires_at } = certificate
  const name = `${subject.id}@${subject.version}`
  if (lapsed) return [`${name} does not act since ${isoDay(lapsed.at)}: ${lapsed.reason}.`]
  if (strata.length === 0) return [`${name} was never compared with a decision.`]
  const until = `The certificate expires on ${isoDay(expires_at)}, or when the model, its instructions or its tools change.`
  return [...actsIn(certificate).map((stratum) => stratumText(certificate, stratum)), until]
}

/** Without the settings' revision: those that reach the model change the hash of its prompt. */
const COMPARED_FIELDS = {
  by: 'the kind',
  agent_version: 'the version',
  model: 'the model',
  prompt_hash: 'the instructions',
  tools_hash: 'the tools',
} as const

/** The first part of the teacher that differs, in words; null if none does. */
export function teacherChange(one: Teacher, other: Teacher): string | null {
  const field = (Object.keys(COMPARED_FIELDS) as (keyof typeof COMPARED_FIELDS)[]).find((name) => one[name] !== other[name])
  return field === undefined ? null : COMPARED_FIELDS[field]
}

function afterComparison(before: Certificate, stratum: Stratum, seen: Seen): Proceeded {
  const own = withStratum(before, counted(stratum, seen))
  const all = togetherOf(before, stratum)
  const counts = all.state === 'open' && joins(before, stratum)
  if (!counts) return decided(own, stratum)
  const isNew = !before.strata.some((one) => isSame(one, stratum))
  const begun = isNew ? joined(all, stratum) : all
  return decided(withStratum(own, isAgain(seen) ? begun : counted(begun, seen)), stratum)
}

/** The certificate after the verdicts on all acts of one type and risk. */
function decided(before: Certificate, { event_type, risk }: Stratum): Proceeded {
  const changes: CertificateMove[] = []
  const strata = before.strata.map((one): Stratum => {
    if (one.event_type !== event_type || one.risk !== risk || one.state !== 'open') return one
    const verdict = verdictIn(before, one)
    if (verdict === 'open') return one
    const reason = `${one.k} of ${one.n} decisions for ${one.act} on ${event_type} agreed`
    if (one.act !== REST) changes.push({ kind: verdict, event_type, risk, act: one.act, reason })
    return { ...one, state: verdict }
  })
  return { certificate: { ...before, strata }, changes }
}

/** An audit counts for its act, and for all acts together if the act was proven with them. */
function afterAudit(before: Certificate, stratum: Stratum, { agreed, signs }: Seen): Proceeded | null {
  if (stratum.state !== 'proven') return null
  const own = audited(stratum, { agreed, signs: signs ?? null }, barOf(before, stratum))
  if (own.branch?.audits.alarm) return afterBranchAlarm(before, own, own.branch.audits)
  const isInBranch = own.branch !== undefined && own.branch !== stratum.branch
  const isOfAll = !isInBranch && isShared(before, stratum)
  const shared = isOfAll ? [togetherOf(before, stratum)].filter(({ state }) => state === 'proven') : []
  const changes: CertificateMove[] = []
  const closes = own.branch ? undefined : stratum.branch
  let certificate = before
  for (const one of [own, ...shared.map((all) => withAudit(all, { agreed, closes }, barOf(before, all)))]) {
    const { audits } = one
    certificate = withStratum(certificate, audits.alarm ? reopened(one) : one)
    if (!audits.alarm) continue
    const { event_type, risk, act } = one
    const whose = act === REST ? 'for all acts together' : `for ${act}`
    const reason = `${audits.disagreed} of ${audits.audits} decisions ${whose} on ${event_type} since its proof disagreed`
    changes.push({ kind: 'drifted', event_type, risk, act, reason })
    if (act === REST) certificate = { ...certificate, strata: certificate.strata.map((other) => withoutTogether(before, other, one)) }
  }
  return { certificate, changes }
}

/** A branch that drifted acts no longer. The rest is proven by its own counts, or open again. */
function afterBranchAlarm(before: Certificate, stratum: Stratum, { audits, disagreed }: Stratum['audits']): Proceeded {
  const { event_type, risk, act } = stratum
  const rest = withoutBranch(stratum)
  const reason = `${disagreed} of ${audits} decisions for ${act} on ${event_type} that are alike disagreed since its proof`
  const changes: CertificateMove[] = [{ kind: 'drifted', event_type, risk, act, reason }]
  if (!rest) return { certificate: withStratum(before, reopened(stratum)), changes }
  const isProven = verdictIn(withStratum(before, rest), rest) === 'proven'
  const open = { ...rest, state: 'open' as const, person: null, audits: emptyCusum() }
  return { certificate: withStratum(before, isProven ? rest : open), changes }
}

/** A disagreement counts as an agreement in the counts of a proof, and no longer in its audits. */
function afterRetraction(before: Certificate, seen: Extract<Observation, { kind: 'retracted' }>): Proceeded {
  const { event_type, risk, act, seq, at, counted_at, signs } = seen
  const stratum = stratumOf(before, { event_type, risk, act, seq, at })
  const isAudit = seen.of === 'audit'
  const isOfBranch = isAudit && stratum !== null && signs !== undefined && isSuspect(stratum, signs)
  // A drift, or a proof by other decisions, has forgotten it: counts that began later lack it.
  const hasCounted = (one: Stratum): boolean => one.k < one.n && one.from.at <= counted_at
  const hasAudited = (one: Stratum): boolean =>
    one.state === 'proven' && one.to.at <= counted_at && !isLeft(one, signs ?? []) && (isOfBranch || one.audits.disagreed > 0)
  if (!stratum || !(isAudit ? hasAudited(stratum) : hasCounted(stratum))) return { certificate: before, changes: [] }
  const others = [togetherOf(before, stratum)].filter((all) =>
    isAudit
      ? !isOfBranch && isShared(before, stratum) && all.state === 'proven' && all.audits.disagreed > 0
      : joins(before, { ...stratum, n: stratum.n - 1 }) && hasCounted(all) && (all.state === 'open' || counted_at <= all.to.at),
  )
  const right = (one: Stratum): Stratum => (isAudit ? withoutOne(one, signs ?? null, barOf(before, one)) : agreed(one))
  const counted = [stratum, ...others].reduce((certificate, one) => withStratum(certificate, right(one)), before)
  const { certificate, changes } = decided(counted, stratum)
  const reason = `asked twice more, the slow path decided as it did for ${act} on ${event_type}`
  return { certificate: summed(certificate), changes: [{ kind: 'retracted', event_type, risk, act, reason }, ...changes] }
}

const agreed = (one: Stratum): Stratum => ({
  ...one,
  k: one.k + 1,
  state: one.state === 'refuted' && one.person === null ? 'open' : one.state,
})

const isShared = (certificate: Certificate, stratum: Stratum): boolean =>
  countsTogether(certificate, stratum) && !isProvenAlone(certificate, stratum)

/** A stratum that was proven with others is compared again without them. */
const withoutTogether = (before: Certificate, one: Stratum, { event_type, risk }: Stratum): Stratum =>
  one.state === 'proven' && one.event_type === event_type && one.risk === risk && one.act !== REST && isShared(before, one)
    ? reopened(one)
    : one

/** The verdict on a stratum, from counts alone. */
export const verdictOf = (certificate: Certificate, stratum: Stratum): ProofVerdict => verdictIn(certificate, stratum)

/**
 * Compared events teach their shapes; the shapes of a proof say how many unseen ones are usual. The
 * senders and numbers of decisions that agreed are new no longer, audits included.
 */
function shapesAfter(before: Certificate['shapes'], { kind, shape, traits, agreed }: Seen, isProven: boolean): Certificate['shapes'] {
  const values = traits && agreed ? { values: teachValues(before.values ?? noValues(), traits) } : {}
  if (kind !== 'compared' || shape === undefined) return { ...before, ...values }
  const taught = teachShape(before, shape)
  return { ...before, ...values, ...taught, ...(isProven && { baseline: unseenShare(taught) }) }
}

/** All strata go back to shadow mode: the counts came from other events than the current ones. */
function afterShape(before: Certificate, { unseen, weight }: Extract<Observation, { kind: 'shape' }>): ReturnType<typeof proceed> {
  const { baseline, taught, rare, values, ...window } = before.shapes
  const kept = { baseline, taught, rare, ...(values && { values }) }
  const counted = countShape(window, unseen, baseline, weight)
  if (!counted.alarm) return { certificate: { ...before, shapes: { ...counted, ...kept } }, changes: [] }
  const strata = before.strata.map((one) => (one.state === 'proven' ? reopened(one) : one))
  const reason = 'more of the events than before have an unseen shape'
  return {
    certificate: summed({ ...before, strata, shapes: { ...emptyShapeWindow(), ...kept } }),
    changes: [{ kind: 'shapes_changed', reason }],
  }
}

type Seen = Extract<Observation, { agreed: boolean }>

function summed(certificate: Certificate): Certificate {
  const proven = certificate.lapsed ? [] : actsIn(certificate).filter(({ state }) => state === 'proven')
  const bounds = proven.map((stratum) => {
    const { alone, together } = provenBounds(certificate, stratum)
    return together ?? alone
  })
  return {
    ...certificate,
    n: proven.reduce((sum, { n }) => sum + n, 0),
    k: proven.reduce((sum, { k }) => sum + k, 0),
    bound: bounds.length === 0 ? null : Math.min(...bounds),
  }
}

const percent = (share: number): string => `${Math.floor(share * 1000 + 1e-9) / 10} %`

function stratumText(certificate: Certificate, stratum: Stratum): string {
  const { event_type, act, state, n, k, from, to, audits, drifts } = stratum
  const on = `For ${act} on ${event_type}`
  if (state === 'refuted')
    return `${on} it stays in shadow mode: ${stratum.person === null ? `only ${k} of ${n} decisions agreed` : `${stratum.person} rejected it`}.`
  const again = drifts === 0 ? '' : ` It was sent back to shadow mode ${drifts} ${drifts === 1 ? 'time' : 'times'}.`
  if (state === 'open') return `${on} it does not act yet: ${openText(certificate, stratum)}.${again}`
  const { alone, together } = provenBounds(certificate, stratum)
  const with_all = countsOfAll(certificate, stratum)
  const shared = together === null ? '' : `, and ${percent(together)} for all acts together (${with_all.k} of ${with_all.n})`
  const proof = `${k} of ${n} decisions from ${isoDay(from.at)} to ${isoDay(to.at)} agreed, which proves more than ${percent(alone)}${shared}, and is wrong in at most ${certificate.alpha * 100} % of such proofs`
  const audited =
    audits.audits === 0 ? 'not compared or audited since' : `${audits.audits - audits.disagreed} of ${audits.audits} decisions since agreed`
  const doubted = doubtIn(certificate, stratum)
  if (doubted !== null) return `${on} it does not act for now: ${doubted}. Before, ${k} of ${n} had agreed.${again}`
  return `${on}: ${proof}; ${audited}.${waitText(stratum)}${again}`
}

function waitText({ person, risk, says }: Stratum): string {
  if (person !== null) return ''
  if (risk === 'final') return ' It waits for a person: the action can be neither undone nor repeated.'
  return says !== undefined ? ' It waits for a person: it says the words that its code has, and was compared as if any would do.' : ''
}
