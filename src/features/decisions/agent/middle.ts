import { parseAction, type Action, type Permission, type Permitted } from '../../../contract/action.ts'
import type { Left } from '../contract/entry.ts'
import type { DecisionModelAnswers } from '../../../contract/decision-answers.ts'
import { DECISION_ID, type ReflexVersion } from '../../../contract/reflex.ts'
import type { DecisionModelSetting } from '../contract/setting.ts'
import type { Event } from '../../../core/event.ts'
import { messageOf } from '../../../base/error-text.ts'
import type { JsonFields } from '../../../base/json.ts'
import { fillSlots } from '../../../tools/slot-text.ts'
import { likeliest } from './answers.ts'

/** The decision as the author of its actions, in the place of a reflex. */
export const authorOf = ({ name }: DecisionModelSetting, version: number, hash: string): ReflexVersion => ({
  id: DECISION_ID + name,
  version,
  hash,
  code: '',
  description: '',
  state: 'active',
  state_reason: null,
  by_proof: false,
  sealed: false,
  sharing: 'project',
  owner: '',
  owner_id: '',
  scopes: [],
  created_at: 0,
  provenance: { by: '', scope: null, template: null, origin: null },
})

export const isAskedAbout = ({ types }: DecisionModelSetting, { type }: Event): boolean => types?.includes(type) ?? true

type Rules = {
  setting: DecisionModelSetting
  event: Event
  /** The least probability to act on; null if none was chosen. */
  threshold: number | null
  permit: (action: Action) => Permission
}
/** `score`: of the likeliest answer. `left`: why a turn decides; null if the model does. */
export type MiddleJudgement = {
  score: number
  left: Left | null
  detail: string | null
  action: Action | null
  permitted: Permitted | null
}

/** The action for an answer. Pure: a replay judges the recorded answer again. */
export function judge(answers: DecisionModelAnswers, { setting, event, threshold, permit }: Rules): MiddleJudgement {
  const answer = answers[setting.name]
  const best = answer && likeliest(answer)
  if (!best) return leave(0, 'no_action', 'the answer has no probabilities')
  const { value, probability: score } = best
  const planned = Object.hasOwn(setting.actions, String(value)) ? setting.actions[String(value)] : undefined
  if (!planned) return leave(score, 'no_action', `no action is set for the answer ${String(value)}`)
  const filled = actionFor(planned, event)
  if (!filled.ok) return leave(score, 'no_action', filled.error)
  const { action } = filled
  const permission = permit(action)
  if (!permission.ok) return leave(score, 'refused', permission.detail)
  const judged = { score, action, permitted: permission }
  if (threshold === null) return { ...judged, left: 'threshold', detail: 'no threshold was chosen yet' }
  if (score < threshold) return { ...judged, left: 'threshold', detail: `the probability is below ${threshold}` }
  return { ...judged, left: null, detail: null }
}

const leave = (score: number, left: Left, detail: string): MiddleJudgement => ({ score, left, detail, action: null, permitted: null })

/** An event may lack a field that a placeholder names. */
function actionFor(planned: Action, event: Event): ReturnType<typeof parseAction> {
  try {
    return parseAction(fillSlots(planned as JsonFields, event as unknown as JsonFields))
  } catch (error) {
    return { ok: false, error: messageOf(error) }
  }
}
