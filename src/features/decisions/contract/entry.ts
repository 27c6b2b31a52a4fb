import type { Action } from '../../../contract/action.ts'
import type { DecisionModelAnswers } from '../../../contract/decision-answers.ts'

/**
 * The reason why the decision model leaves an event to the turn. `failed`: it did not answer.
 * `no_action`: none is set for the answer. `refused`: the scope does not allow it. `threshold`: not
 * sure enough. `proof`: its certificate does not allow it. `audit`: drawn for an audit.
 */
export type Left = 'failed' | 'no_action' | 'refused' | 'threshold' | 'proof' | 'audit'

/** A decision on an event that a turn would consider. */
type Middle = {
  /** As the author of the action: `decision:NAME`. */
  decision_id: string
  version: number
  /** Hash of the part with the settings in force. */
  basis: string
  /** Hash of the part with the state that the model was asked about. */
  state_hash: string
  score: number
  threshold: number | null
  /** The action for the answer, if there is one: it is carried out if `left` is null. */
  action: Action | null
  left: Left | null
  detail: string | null
}

/** A call of the decision model, without its usage. */
export type DecisionMade = {
  kind: 'decision-made'
  /** The name that it is priced by. `answered_by`: as the provider names it. */
  model: string
  answered_by: string | null
  status: 'ok' | 'failed'
  answers: DecisionModelAnswers | null
  error: string | null
  /** Null if a request asked for the decision. */
  middle: Middle | null
  /** A reflex had answered, and its answer was audited. */
  audit?: true
}
