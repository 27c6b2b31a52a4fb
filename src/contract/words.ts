import { actsIn, type Action, type Sequence, type SequenceAct } from './action.ts'
import type { Words } from './reflex.ts'

/** The values of the setting `learning.replies`. */
export const replies = ['heard', 'exact', 'by_person', 'ignore'] as const
export type Replies = (typeof replies)[number]

/** A text of several words, which a model words freely, has them apart. */
export const SEVERAL_WORDS = /\S\s+\S/

/** The meaning of words in a decision. An older version recorded events without `meta`, too. */
export function wordsIn(replies: Replies, { meta }: { meta?: { heard?: true | undefined } }): Words {
  if (replies === 'exact') return 'exact'
  if (replies === 'ignore' || meta?.heard !== true) return 'none'
  return replies === 'by_person' ? 'said' : 'exact'
}

/**
 * The meaning of words where an action is compared with a decision. Words of its own always count:
 * a proof on events that nobody hears holds on all events of the type.
 */
export function wordsFor(action: Action, replies: Replies, event: Parameters<typeof wordsIn>[1]): Words {
  if (!saysWords(action)) return wordsIn(replies, event)
  return choosesWords(action, replies) ? 'said' : 'exact'
}

/** True for a sequence that says any words that will do beside other acts: a person allows them. */
export const choosesWords = (action: Action, replies: Replies): boolean =>
  saysWords(action) &&
  (replies === 'by_person' || (replies === 'heard' && action.any_words === true)) &&
  actsIn(action).some(({ action_type }) => action_type !== 'reply')

/** The words of a sequence in the log, for its certificate; undefined for other actions. */
export const comparedWords = (action: Action, replies: Replies, log_seq: number): ComparedWords | undefined =>
  action.action_type === 'sequence' ? { replies, says: choosesWords(action, replies) ? log_seq : null } : undefined
/** `says`: the place in the log of words of its own choice; null if it has none. */
export type ComparedWords = { replies: string; says: number | null }

/** The words of a sequence, in all branches. Outputs in them stand as their places. */
export const spokenIn = (action: Action): Spoken[] =>
  action.action_type === 'sequence'
    ? actsIn(action).flatMap((act): Spoken[] => ('parts' in act ? [act.parts] : act.action_type === 'reply' ? [act.content] : []))
    : []
export type Spoken = string | Extract<SequenceAct, { parts: unknown }>['parts']

const saysWords = (action: Action): action is Sequence =>
  action.action_type === 'sequence' && actsIn(action).some(({ action_type }) => action_type === 'reply')
