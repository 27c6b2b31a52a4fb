import { createHash } from 'node:crypto'
import type { AuditOccasion } from '../contract/feedback.ts'
import type { AuditPace } from '../contract/reports/reflex-report.ts'
import type { Risk } from '../contract/risk.ts'

/** A number in [0, 1) that depends on the text alone: the same in a replay. */
export const unitHash = (text: string): number =>
  Number.parseInt(createHash('sha256').update(text).digest('hex').slice(0, 12), 16) / 2 ** 48

/**
 * True if the decision about this event is audited. `salt`, for example the hash of the version,
 * makes the draws of two versions independent.
 */
export const isAudited = (event_id: string, { share, salt }: { share: number; salt: string }): boolean =>
  unitHash(`${salt}\0${event_id}`) < share

/** The first acts after a proof are all audited, later ones by a share that falls. */
const FIRST = 5
/** At least one act is audited in each such number of acts that reach outside. */
const MOST_UNAUDITED = 20

type Act = { event_id: string; salt: string; share: number; risk: Risk; is_new: boolean }

/** The share of decisions that a draw alone audits where nothing counts them. */
export const shareFor = (risk: Risk, share: number): number => (risk === 'inside' ? share : Math.max(share, 1 / MOST_UNAUDITED))

/**
 * Why the next act is audited, or null: it is not. A share of 0 turns audits off, except for what
 * reaches outside: there new values and one act in twenty are audited at any share.
 */
export function occasionOf(
  { acts, unaudited }: Pick<AuditPace, 'acts' | 'unaudited'>,
  { event_id, salt, share, risk, is_new }: Act,
): AuditOccasion | null {
  const reaches = risk !== 'inside'
  if (is_new && (reaches || share > 0)) return 'new'
  if (isAudited(event_id, { share, salt })) return 'drawn'
  if (share > 0 && isAudited(event_id, { share: FIRST / (acts + 1), salt })) return 'first'
  return reaches && unaudited + 1 >= MOST_UNAUDITED ? 'due' : null
}

/** The pace after one more act. */
export const countAct = ({ proof, acts, unaudited }: AuditPace, occasion: AuditOccasion | null): AuditPace => ({
  proof,
  acts: acts + 1,
  unaudited: occasion === null ? unaudited + 1 : 0,
})
