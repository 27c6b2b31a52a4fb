import type { Certificate, Stratum, Teacher } from '../contract/certificate.ts'
import type { Risk } from '../../../contract/risk.ts'
import { countAudit, countShape, doubt, emptyCusum, emptyShapeWindow, teachShape, type TaughtShapes, unseenShare } from './drift.ts'
import { teachValues, noValues, type EventTraits, type TaughtValues } from './novelty.ts'
import { type Bar, barFor, type SequentialProof, sprt } from './sprt.ts'

/** Event types that are judged by themselves; further ones share the stratum `*`. */
export const MOST_TYPES = 50
const VALID_MS = 90 * 86_400_000

type Where = { event_type: string; risk: Risk }
type When = { seq: number; at: number; teacher: Teacher }
/** A certificate holds for a slow path, and for a meaning of words. */
type Ground = { at: number; teacher: Teacher; replies?: string | undefined }
/**
 * `compared`: in shadow mode, with the actual decision; after a proof it counts as an audit.
 * `audited`: after it acted, with a dry run of the slow path or with what a person said. `shape`:
 * an event that it decided on, or a sample that stands for `weight` of them. `words`: the setting
 * by which words of a sequence were compared, and if a person must allow its own.
 */
export type Observation = When &
  (
    | (Where & {
        kind: 'compared' | 'audited'
        agreed: boolean
        shape?: string | undefined
        traits?: EventTraits | undefined
        words?: ComparedWords | undefined
      })
    | { kind: 'shape'; unseen: boolean; weight?: number }
  )
export type ComparedWords = { replies: string; says: boolean }
/** A change that the caller must follow up and log. */
export type CertificateMove =
  | (Where & { kind: 'proven' | 'refuted' | 'drifted'; reason: string })
  | { kind: 'shapes_changed' | 'lapsed'; reason: string }

type Opening = Pick<When, 'teacher' | 'at'> &
  Partial<Pick<Certificate, 'noise' | 'least' | 'strata'>> & {
    baseline?: number
    shapes?: TaughtShapes & { values?: TaughtValues | undefined }
  }

export function openCertificate(
  subject: Certificate['subject'],
  { teacher, at, noise = 0, baseline = 0, shapes = { taught: {}, rare: 0 }, least = { agreement: 0, support: 0 }, strata = [] }: Opening,
): Certificate {
  return {
    subject,
    teacher,
    procedure: 'sprt',
    alpha: 0.05,
    delta: 0.05,
    noise,
    least,
    n: 0,
    k: 0,
    bound: null,
    strata,
    shapes: { ...emptyShapeWindow(), baseline, taught: shapes.taught, rare: shapes.rare, ...(shapes.values && { values: shapes.values }) },
    issued_at: at,
    expires_at: at + VALID_MS,
    lapsed: null,
  }
}

/** The certificate after one more observation. Pure; the one that was given stays as it is. */
export function proceed(before: Certificate, seen: Observation): { certificate: Certificate; changes: CertificateMove[] } {
  if (before.lapsed) return { certificate: before, changes: [] }
  const changed = teacherChange(before.teacher, seen.teacher)
  if (changed !== null) {
    const reason = `${changed} of the slow path changed`
    return { certificate: summed({ ...before, lapsed: { at: seen.at, reason } }), changes: [{ kind: 'lapsed', reason }] }
  }
  if (seen.kind === 'shape') return afterShape(before, seen)
  const { words } = seen
  // An audit that was drawn under another setting says nothing of this proof.
  if (words && before.replies !== undefined && before.replies !== words.replies) return { certificate: before, changes: [] }
  const known = stratumOf(before, seen)
  const stratum = words?.says ? { ...known, says: true as const } : known
  const opens = seen.kind === 'compared' && stratum.state === 'open'
  const after = opens ? afterComparison(stratum, seen, before) : afterAudit(stratum, seen, before)
  if (!after) return { certificate: before, changes: [] }
  const shapes = shapesAfter(before.shapes, seen, after.change)
  const others = before.strata.filter((one) => !isSame(one, stratum))
  const { event_type, risk } = stratum
  const changes: CertificateMove[] = after.change ? [{ ...after.change, event_type, risk }] : []
  const bound = words && { replies: words.replies }
  return { certificate: summed({ ...before, ...bound, shapes, strata: [...others, after.stratum] }), changes }
}

/** A person allows a proven action, for example one that can be neither undone nor repeated. */
export const allow = (before: Certificate, where: Where, person: string): Certificate => changedAt(before, where, { person })

/** Strata that a person rejected, which no later certificate proves. */
export const rejectedStrata = ({ strata }: Pick<Certificate, 'strata'>): Stratum[] =>
  strata.filter(({ state, person }) => state === 'refuted' && person !== null)

/** A person rejects a proven action: it never acts. */
export const reject = (before: Certificate, where: Where, person: string): Certificate =>
  summed(changedAt(before, where, { state: 'refuted', person }))

function changedAt(before: Certificate, where: Where, change: Partial<Stratum>): Certificate {
  const stratum = stratumOf(before, { ...where, seq: 0, at: before.issued_at })
  return { ...before, strata: before.strata.map((one) => (isSame(one, stratum) ? { ...one, ...change } : one)) }
}

/** The reason why a certificate is no longer in force, or null: it is. */
export function expiry({ lapsed, teacher: before, expires_at, replies: by }: Certificate, { at, teacher, replies }: Ground): string | null {
  if (lapsed) return lapsed.reason
  const changed = teacherChange(before, teacher)
  if (changed !== null) return `${changed} of the slow path changed`
  if (by !== undefined && by !== replies) return 'the setting learning.replies changed'
  return at >= expires_at ? 'its certificate has expired' : null
}

/**
 * The reason why it may not act on such an event by itself, or null: it may. `asks`: a person must
 * allow each action.
 */
export function obstacle(
  certificate: Certificate,
  { event_type, risk, at, teacher, replies, asks = false }: Where & Ground & { asks?: boolean },
): string | null {
  const ended = expiry(certificate, { at, teacher, replies })
  if (ended !== null) return ended
  const stratum = stratumOf(certificate, { event_type, risk, seq: 0, at })
  const { state, n, k, person } = stratum
  if (state === 'refuted') return refusedText({ event_type, n, k, person })
  if (state === 'open') return openText(certificate, { event_type, risk, n, k })
  const doubted = doubtIn(certificate, stratum)
  if (doubted !== null) return `on ${event_type} ${doubted}`
  if (risk === 'final' && person === null) return `its action on ${event_type} can be neither undone nor repeated: a person must allow it`
  return (asks || stratum.says) && person === null ? `its action on ${event_type} is proven: a person must allow it` : null
}

/**
 * Why a proven stratum does not act for now, or null: since its proof decisions disagreed, and
 * fewer have agreed again than it takes.
 */
export function doubtIn(certificate: Certificate, { state, risk, audits }: Stratum): string | null {
  const needed = state === 'proven' ? doubt(audits, barOf(certificate, risk)) : 0
  if (needed === 0) return null
  const { disagreed } = audits
  return `${disagreed} of ${audits.audits} decisions since its proof disagreed: at least ${needed} more must agree`
}

/**
 * Since when, in ms, and why what acts by proof acts on nothing; null: it acts on something. A time
 * of null is unknown.
 */
export function idleSince(certificate: Certificate, at: number): { at: number | null; reason: string } | null {
  const { lapsed, expires_at, strata } = certificate
  if (lapsed) return lapsed
  if (at >= expires_at) return { at: expires_at, reason: 'its certificate has expired' }
  const proven = strata.filter(({ state }) => state === 'proven')
  const doubts = proven.map((stratum) => doubtIn(certificate, stratum))
  if (doubts.includes(null)) return null
  const [stratum] = strata
  if (doubts[0] != null) return { at: null, reason: `on ${proven[0]?.event_type} ${doubts[0]}` }
  if (!stratum) return { at: null, reason: 'it was never compared with a decision' }
  const { event_type, risk, n, k, person, state } = stratum
  const reason = state === 'refuted' ? refusedText({ event_type, n, k, person }) : openText(certificate, { event_type, risk, n, k })
  return { at: null, reason }
}

const refusedText = ({ event_type, n, k, person }: Pick<Stratum, 'event_type' | 'n' | 'k' | 'person'>): string =>
  person === null ? `only ${k} of ${n} decisions on ${event_type} agreed` : `${person} rejected its action on ${event_type}`

/** The certificate in sentences, for people. */
export function why(certificate: Certificate): string[] {
  const { subject, strata, lapsed, expires_at } = certificate
  const name = `${subject.id}@${subject.version}`
  if (lapsed) return [`${name} does not act since ${day(lapsed.at)}: ${lapsed.reason}.`]
  if (strata.length === 0) return [`${name} was never compared with a decision.`]
  const until = `The certificate expires on ${day(expires_at)}, or when the model, its instructions or its tools change.`
  return [...strata.map((stratum) => stratumText(certificate, stratum)), until]
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

type Counted = { stratum: Stratum; change: { kind: 'proven' | 'refuted' | 'drifted'; reason: string } | null }

function afterComparison(before: Stratum, { seq, at, agreed }: Seen, certificate: Certificate): Counted {
  const n = before.n + 1
  const k = before.k + (agreed ? 1 : 0)
  const counted = { ...before, n, k, from: before.n === 0 ? { seq, at } : before.from, to: { seq, at } }
  const { verdict } = proofOf(certificate, counted)
  if (verdict === 'open') return { stratum: counted, change: null }
  const reason = `${k} of ${n} decisions on ${before.event_type} agreed`
  return { stratum: { ...counted, state: verdict }, change: { kind: verdict, reason } }
}

function afterAudit(before: Stratum, { agreed }: Seen, certificate: Certificate): Counted | null {
  if (before.state !== 'proven') return null
  const audits = countAudit(before.audits, agreed, barOf(certificate, before.risk))
  if (!audits.alarm) return { stratum: { ...before, audits }, change: null }
  const reason = `${audits.disagreed} of ${audits.audits} decisions on ${before.event_type} since its proof disagreed`
  return { stratum: reopened(before), change: { kind: 'drifted', reason } }
}

const barOf = ({ noise, least }: Certificate, risk: Risk): Bar => barFor(risk, { noise, least: least.agreement })

/** The test of a stratum, which takes at least as many decisions as the setting demands. */
function proofOf(certificate: Certificate, { risk, n, k }: Pick<Stratum, 'risk' | 'n' | 'k'>): SequentialProof {
  const proof = sprt(barOf(certificate, risk), { agreed: k, disagreed: n - k })
  const lacking = certificate.least.support - n
  if (proof.verdict === 'refuted' || lacking <= 0) return proof
  return { verdict: 'open', needed: Math.max(proof.needed, lacking) }
}

/** The verdict on a stratum, from its counts alone. */
export const verdictOf = (certificate: Certificate, stratum: Pick<Stratum, 'risk' | 'n' | 'k'>): SequentialProof['verdict'] =>
  proofOf(certificate, stratum).verdict

/**
 * Compared events teach their shapes; the shapes of a proof say how many unseen ones are usual. The
 * senders and numbers of decisions that agreed are new no longer, audits included.
 */
function shapesAfter(
  before: Certificate['shapes'],
  { kind, shape, traits, agreed }: Seen,
  change: Counted['change'],
): Certificate['shapes'] {
  const values = traits && agreed ? { values: teachValues(before.values ?? noValues(), traits) } : {}
  if (kind !== 'compared' || shape === undefined) return { ...before, ...values }
  const taught = teachShape(before, shape)
  return { ...before, ...values, ...taught, ...(change?.kind === 'proven' && { baseline: unseenShare(taught) }) }
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

const reopened = (stratum: Stratum): Stratum => ({
  ...stratum,
  state: 'open',
  n: 0,
  k: 0,
  person: null,
  audits: emptyCusum(),
  drifts: stratum.drifts + 1,
})

type Seen = Extract<Observation, { agreed: boolean }>

const isSame = (one: Stratum, { event_type, risk }: Where): boolean => one.event_type === event_type && one.risk === risk

function stratumOf({ strata }: Certificate, { event_type, risk, seq, at }: Where & { seq: number; at: number }): Stratum {
  const types = new Set(strata.map((one) => one.event_type))
  const type = types.has(event_type) || types.size < MOST_TYPES ? event_type : '*'
  const known = strata.find((one) => isSame(one, { event_type: type, risk }))
  if (known) return known
  const place = { seq, at }
  return { event_type: type, risk, state: 'open', n: 0, k: 0, from: place, to: place, person: null, audits: emptyCusum(), drifts: 0 }
}

function summed(certificate: Certificate): Certificate {
  const proven = certificate.lapsed ? [] : certificate.strata.filter(({ state }) => state === 'proven')
  return {
    ...certificate,
    n: proven.reduce((sum, { n }) => sum + n, 0),
    k: proven.reduce((sum, { k }) => sum + k, 0),
    bound: proven.length === 0 ? null : Math.min(...proven.map(({ risk }) => barOf(certificate, risk).poor)),
  }
}

const day = (at: number): string => new Date(at).toISOString().slice(0, 10)

function openText(certificate: Certificate, { event_type, risk, n, k }: Where & { n: number; k: number }): string {
  const { needed } = proofOf(certificate, { risk, n, k })
  return `${k} of ${n} decisions on ${event_type} agreed: at least ${needed} more must agree`
}

function stratumText(certificate: Certificate, stratum: Stratum): string {
  const { event_type, state, n, k, from, to, risk, audits, drifts, person } = stratum
  if (state === 'refuted')
    return `On ${event_type} it stays in shadow mode: ${person === null ? `only ${k} of ${n} decisions agreed` : `${person} rejected it`}.`
  const again = drifts === 0 ? '' : ` It was sent back to shadow mode ${drifts} ${drifts === 1 ? 'time' : 'times'}.`
  if (state === 'open') return `On ${event_type} it does not act yet: ${openText(certificate, stratum)}.${again}`
  const { poor } = barOf(certificate, risk)
  const least = Math.floor(poor * 1000) / 10
  const proof = `${k} of ${n} decisions from ${day(from.at)} to ${day(to.at)} agreed, which proves more than ${least} % but for ${certificate.alpha * 100} %`
  const audited =
    audits.audits === 0 ? 'not compared or audited since' : `${audits.audits - audits.disagreed} of ${audits.audits} decisions since agreed`
  const doubted = doubtIn(certificate, stratum)
  if (doubted !== null) return `On ${event_type} it does not act for now: ${doubted}. Before, ${k} of ${n} had agreed.${again}`
  const waits = risk === 'final' && person === null ? ' It waits for a person: the action can be neither undone nor repeated.' : ''
  return `On ${event_type}: ${proof}; ${audited}.${waits}${again}`
}
