import { createHash } from 'node:crypto'
import type { AuditOccasion } from '../contract/feedback.ts'
import type { AuditPace } from '../contract/reports/reflex-report.ts'
import type { Risk } from '../contract/risk.ts'
import { countValues } from './values.ts'

/** A number in [0, 1) that depends on the text alone: the same in a replay. */
export const unitHash = (text: string): number =>
  Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 12), 16) / 2 ** 48

/**
 * True if the decision about this event is audited. `salt`, for example the hash of the version,
 * makes the draws of two versions independent.
 */
export const isAudited = (event_id: string, { share, salt }: { share: number; salt: string }): boolean =>
  unitHash(`${salt}\0${event_id}`) < share

/** The first acts after a proof or a disagreement are audited, later ones by a falling share. */
const FIRST = 5
/**
 * At least one act is audited in each such number of acts that reach outside, and the reflex waits
 * for the answer before it does more than that. A draw adds the same share, so that whoever picks
 * which acts are wrong has as many of them, on average, before an audit sees one.
 */
const MOST_UNAUDITED = 20

/**
 * An audit that is due soon is of an act with a value of which as many acts went by without one: a
 * change that concerns one value alone is not found by audits of the others.
 */
const SOON_DUE = 10

type Act = { event_id: string; salt: string; share: number; risk: Risk; is_new: boolean; values?: readonly string[] }
type Counts = Omit<AuditPace, 'proof'>

/** The share of decisions that a draw audits. */
export const shareFor = (risk: Risk, share: number): number => (risk === 'inside' ? share : Math.max(share, 1 / MOST_UNAUDITED))

/** True if so many acts wait for a verdict that no further one may reach outside. */
export const isAwaited = ({ acts, judged = 0 }: Counts): boolean => acts - judged >= MOST_UNAUDITED

/**
 * Why the next act is audited, or null: it is not. A share of 0 turns audits off, except for what
 * reaches outside: there new values and one act in twenty are audited at any share.
 */
export function occasionOf(pace: Counts, { event_id, salt, share, risk, is_new, values = [] }: Act): AuditOccasion | null {
  const { acts, unaudited, doubted = 0, next = false, values: counts = {} } = pace
  const reaches = risk !== 'inside'
  if (is_new && (reaches || share > 0)) return 'new'
  if (isAudited(event_id, { share: shareFor(risk, share), salt })) return 'drawn'
  if (share > 0 && (next || isAudited(event_id, { share: FIRST / (acts - doubted + 1), salt }))) return 'first'
  const isDue = (count: number): boolean => count + 1 >= MOST_UNAUDITED
  const isStale = unaudited + 1 >= SOON_DUE && values.some((value) => isDue(counts[value] ?? 0))
  return reaches && (isStale || isDue(unaudited) || isAwaited(pace)) ? 'due' : null
}

/** The pace after one more act. `values`: of its event, if it reaches outside. */
export const countAct = ({ next, ...pace }: AuditPace, occasion: AuditOccasion | null, values: readonly string[] = []): AuditPace => ({
  ...pace,
  ...(next && occasion === null && { next }),
  acts: pace.acts + 1,
  unaudited: occasion === null ? pace.unaudited + 1 : 0,
  ...(values.length > 0 && { values: countValues(pace.values ?? {}, values, occasion !== null) }),
})

/** The pace after the audit of an act was answered. */
export const countAnswer = (pace: AuditPace, act: number, agreed: boolean): AuditPace => ({
  ...pace,
  judged: Math.max(pace.judged ?? 0, act),
  ...(!agreed && { doubted: pace.acts }),
})
