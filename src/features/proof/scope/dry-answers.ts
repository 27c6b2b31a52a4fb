import type { EntryHead } from '../../../contract/log-entry.ts'
import type { ComparisonTerms, Words } from '../../../contract/reflex.ts'
import { type DryAnswer, isDecided } from '../../../engine/turns/dry/dry-turn.ts'
import { ownersOfActs } from '../../../reflexes/agreement.ts'
import type { OwnAct } from './judgements.ts'

/** Longest wait for the model or its budget: an older decision is not worth the question. */
export const MOST_WAIT_MS = 86_400_000
/** Bounds of the pause before the next try. */
export const AGAIN_MS = { least: 1000, unknown: 60_000, most: 600_000 } as const

/**
 * The pause in ms before the slow path is asked again about a decision of `decided_at`; null if it
 * has answered, or need not be asked any more.
 */
export function pauseBefore({ status, until }: DryAnswer, { decided_at, now }: { decided_at: number; now: number }): number | null {
  if ((status !== 'waiting' && status !== 'refused') || now - decided_at >= MOST_WAIT_MS) return null
  return until === null ? AGAIN_MS.unknown : Math.min(Math.max(until - now, AGAIN_MS.least), AGAIN_MS.most)
}

/** An act on an event that the slow path was asked about. `words`: those that are compared. */
type AskedAbout = Pick<OwnAct, 'own'> & { head: EntryHead; words?: Words | undefined }

/** Tells whose the acts of an answer are, for an event that was ignored. */
export const ownerIn = (answer: DryAnswer, { own, head }: AskedAbout): ReturnType<ReturnType<typeof ownersOfActs>> =>
  isDecided(answer) && own.action_type === 'ignore'
    ? ownersOfActs({ by: 'turn', acts: answer.acts }, { ...answer, events: answer.askers })(head.event_ids[0])
    : 'own'

/** The terms by which an answer is compared with the act. */
export const termsOf = (answer: DryAnswer, about: AskedAbout): ComparisonTerms => ({
  alone: true,
  outputs: answer.outputs,
  ...(answer.failed_reads.length > 0 && { failed_reads: answer.failed_reads }),
  ...(about.words && { words: about.words }),
  ...(ownerIn(answer, about) === 'others' && { others: true }),
})
