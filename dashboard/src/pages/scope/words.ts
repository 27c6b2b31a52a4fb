import type { Action } from '../../../../src/contract/action.ts'
import type { EventRecord, Outcome } from '../../../../src/contract/event-record.ts'

/** Enough for a line; the whole value is one click away. */
const MOST = 200

/** A value as a piece of a sentence. */
export function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text
}

/** The text of a form's field. */
export function fieldOf(event: SubmitEvent, name: string): string {
  const value = new FormData(event.currentTarget as HTMLFormElement).get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** The fields of an event's type, without the common ones. */
export function ownFields(event: EventRecord['event']): Record<string, unknown> {
  const { id: _id, type: _type, scope: _scope, source: _source, timestamp: _at, meta: _meta, ...own } = event
  return own
}

type ActionOf<Type> = Extract<Action, { action_type: Type }>
const reasoned = ({ action_type, reason }: ActionOf<'ignore' | 'escalate' | 'cancel_turn'>): string =>
  `${action_type.replace('_', ' ')}: ${brief(reason)}`
const artifact = ({ action_type, artifact_id }: ActionOf<'write_artifact' | 'invoke_artifact'>): string =>
  `${action_type.replace('_', ' ')} ${artifact_id}`

const actions: { [Type in Action['action_type']]: (action: ActionOf<Type>) => string } = {
  call_tool: ({ tool, args }) => `call ${tool} with ${brief(args)}`,
  reply: ({ content }) => `reply “${brief(content)}”`,
  emit_event: ({ event }) => `emit ${event.type}`,
  set_scratch: ({ key }) => `set ${key} in the scratch`,
  run_skill: ({ skill_id }) => `run the skill ${skill_id}`,
  ignore: reasoned,
  escalate: reasoned,
  cancel_turn: reasoned,
  write_artifact: artifact,
  invoke_artifact: artifact,
}

/** An action of a later version is shown as it is. */
export const actionText = (action: Action): string =>
  (actions[action.action_type] as ((action: Action) => string) | undefined)?.(action) ?? brief(action)

/** True if no filter, reflex, model or turn took up the event. */
export const isUnmatched = (outcome: Outcome | null): boolean => outcome?.by === 'filter' || outcome?.by === 'perceive'

type OutcomeOf<By> = Extract<Outcome, { by: By }>
const decidedTo = (action: Action | undefined): string => (action ? ` to ${actionText(action)}` : '')

/** The calls and runs of a turn that failed, as the end of a sentence. */
export function failuresText({ failed_calls = [], failed_runs = [] }: Pick<OutcomeOf<'turn'>, 'failed_calls' | 'failed_runs'>): string {
  const counted = [
    ...(failed_calls.length > 0 ? [`${failed_calls.length} tool calls failed`] : []),
    ...(failed_runs.length > 0 ? [`${failed_runs.length} skill runs failed`] : []),
  ]
  return counted.map((text) => `; ${text}`).join('')
}

const outcomes: { [By in Outcome['by']]: (outcome: OutcomeOf<By>) => string } = {
  filter: () => 'Nothing matched: no filter of the agent passed it',
  perceive: ({ reason }) => `Nothing matched: it joined the context without a turn (${brief(reason)})`,
  turn: ({ result, idle, ...failed_parts }) => {
    if (idle) return 'Nothing was considered: the condition for a turn does not hold, or the turn had nothing to do'
    const failed = failuresText(failed_parts)
    if (result === undefined) return `A turn considered it${failed}`
    return `${result === null ? 'A turn decided to do nothing' : `A turn answered ${brief(result)}`}${failed}`
  },
  reflex: ({ reflex_id, version, action, reused }) =>
    `Reflex ${reflex_id}@${version} decided${decidedTo(action)}${reused ? ', as it did before' : ''}`,
  decision: ({ model = '', action }) => `The decision model ${model} decided${decidedTo(action)}`,
  pull: () => 'An external consumer acknowledged it',
  cancel: ({ reason }) => `Cancelled: ${brief(reason)}`,
  failure: ({ reason, discarded }) => `${discarded ? 'Discarded' : 'Failed'}: ${brief(reason)}`,
}

export const outcomeText = (outcome: Outcome): string =>
  (outcomes[outcome.by] as ((outcome: Outcome) => string) | undefined)?.(outcome) ?? brief(outcome)
