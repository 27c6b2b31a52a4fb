import type { Action } from '../../../../src/contract/action.ts'
import type { Outcome } from '../../../../src/contract/event-record.ts'

/** Enough for a line; the whole value is one click away. */
const MOST = 200

/** A value as a piece of a sentence. */
export function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text
}

export function actionText(action: Action): string {
  switch (action.action_type) {
    case 'call_tool':
      return `call ${action.tool} with ${brief(action.args)}`
    case 'reply':
      return `reply “${brief(action.content)}”`
    case 'emit_event':
      return `emit ${action.event.type}`
    case 'set_scratch':
      return `set ${action.key} in the scratch`
    case 'run_skill':
      return `run the skill ${action.skill_id}`
    case 'ignore':
    case 'escalate':
    case 'cancel_turn':
      return `${action.action_type.replace('_', ' ')}: ${brief(action.reason)}`
    default:
      return `${String(action.action_type).replace('_', ' ')} ${action.artifact_id}`
  }
}

/** True if no filter, reflex, model or turn took up the event. */
export const isUnmatched = (outcome: Outcome | null): boolean => outcome?.by === 'filter' || outcome?.by === 'perceive'

export function outcomeText(outcome: Outcome): string {
  switch (outcome.by) {
    case 'filter':
      return 'Nothing matched: no filter of the agent passed it'
    case 'perceive':
      return `Nothing matched: it joined the context without a turn (${brief(outcome.reason)})`
    case 'turn': {
      const failed = outcome.failed_calls ? `; ${outcome.failed_calls.length} tool calls failed` : ''
      const { result } = outcome
      return `${result === undefined ? 'A turn considered it' : result === null ? 'A turn decided to do nothing' : `A turn answered ${brief(result)}`}${failed}`
    }
    case 'reflex': {
      const { reflex_id, version, action, reused } = outcome
      return `Reflex ${reflex_id}@${version} decided${action ? ` to ${actionText(action)}` : ''}${reused ? ', as it did before' : ''}`
    }
    case 'decision':
      return `The decision model${outcome.model === undefined ? '' : ` ${outcome.model}`} decided${outcome.action ? ` to ${actionText(outcome.action)}` : ''}`
    case 'pull':
      return 'An external consumer acknowledged it'
    case 'cancel':
      return `Cancelled: ${brief(outcome.reason)}`
    case 'failure':
      return `${outcome.discarded ? 'Discarded' : 'Failed'}: ${brief(outcome.reason)}`
  }
}
