import { counted } from '../../base/amounts.ts'
import type { Action } from '../../contract/action.ts'
import type { Outcome } from '../../contract/event-record.ts'
import type { EntryKind, LogEntry, SkillEntryKind, EntryOf } from '../../contract/log-entry.ts'

/**
 * The sentence of each kind of entries, for people who read a log. The dashboard loads this file,
 * so it imports types, and what the shell has.
 */

/** Enough for a line; the whole value is one click away. */
const MOST = 200

/** A value as a piece of a sentence. */
export function brief(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text
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
  sequence: ({ acts }) => acts.map((act) => ('parts' in act ? 'reply with what they returned' : actionText(act))).join(', then '),
  ignore: reasoned,
  escalate: reasoned,
  cancel_turn: reasoned,
  write_artifact: artifact,
  invoke_artifact: artifact,
}

/** An action of a later version is shown as it is. */
const actionText = (action: Action): string =>
  (actions[action.action_type] as ((action: Action) => string) | undefined)?.(action) ?? brief(action)

type OutcomeOf<By> = Extract<Outcome, { by: By }>
const decidedTo = (action: Action | undefined): string => (action ? ` to ${actionText(action)}` : '')

/** The calls and runs of a turn that failed, as the end of a sentence. */
function failuresText({ failed_calls = [], failed_runs = [] }: Pick<OutcomeOf<'turn'>, 'failed_calls' | 'failed_runs'>): string {
  const parts = [
    ...(failed_calls.length > 0 ? [`${counted(failed_calls.length, 'tool call')} failed`] : []),
    ...(failed_runs.length > 0 ? [`${counted(failed_runs.length, 'skill run')} failed`] : []),
  ]
  return parts.map((text) => `; ${text}`).join('')
}

const outcomes: { [By in Outcome['by']]: (outcome: OutcomeOf<By>) => string } = {
  filter: () => 'Nothing matched: no filter of the agent passed it',
  perceive: ({ reason }) => `Nothing matched: it joined the context without a turn (${brief(reason)})`,
  turn: ({ result, idle, why = 'the condition for a turn does not hold, or the turn had nothing to do', ...failed_parts }) => {
    if (idle) return `Nothing was considered: ${why}`
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

/** The fields of skill entries are as their session writes them. */
type Loose = LogEntry & Record<string, unknown>
type Sayable<Kind extends EntryKind> = Kind extends SkillEntryKind ? Loose : EntryOf<Kind>
/** The reader's word for a status, or for a time in ms. */
type Say = (value: string | number) => string

const because = (reason: string | null | undefined): string => (reason ? `: ${brief(reason)}` : '')
const reflex = ({ reflex_id, version }: { reflex_id: string; version: number | null }): string =>
  `${reflex_id}${version === null ? '' : `@${version}`}`
const skill = ({ skill_id, version, payment }: Loose): string =>
  `${payment ? 'payment by' : 'skill'} ${brief(skill_id)}${version === undefined ? '' : `@${brief(version)}`}`
const tokens = ({ usage }: { usage: { input_tokens: number; output_tokens: number; cost_usd: number | null } }): string =>
  ` (${usage.input_tokens + usage.output_tokens} tokens${usage.cost_usd ? `, $${Number(usage.cost_usd.toPrecision(2))}` : ''})`

const arrivals: Record<string, string> = {
  no_trigger: 'the agent starts no turn for it',
  dropped: 'it joins the context without a turn',
  interrupts: 'it interrupts the turn in flight',
  waits: 'it waits for the turn in flight',
  debounced: 'it waits for a quiet time',
}

const passes: Record<string, string> = {
  null: 'had nothing to do',
  missing: 'does not exist here',
  refused: 'is not allowed to act here',
  cooldown: 'is held back by its cooldown',
  rate: 'is held back by its rate',
  uncertified: 'has no proof for this action',
}

/** The average turn, which a bought reflex spares. */
const licensed = ({ licence }: EntryOf<'reflex-fired'>): string =>
  licence
    ? `, under the deal ${licence.deal_id}${licence.saves ? `, which saved about ${licence.saves.model_calls.toFixed(1)} model calls and $${licence.saves.cost_usd.toFixed(4)}` : ''}`
    : ''

const textOf = (value: unknown): string | null => (value === null || value === undefined ? null : brief(value))
const verdictOf = (decision: unknown): unknown =>
  typeof decision === 'object' && decision !== null && 'verdict' in decision ? decision.verdict : decision

/** A kind that the log gets and that has no sentence fails to compile. */
const sentences: { [Kind in EntryKind]: (entry: Sayable<Kind>, say: Say) => string } = {
  'event-accepted': ({ event_type, source, via, overlap }) =>
    `${event_type} from ${brief(source)} arrived by ${via}${because(overlap && arrivals[overlap.arrival])}`,
  'event-joined': () => 'The event joined the context',
  'event-retried': ({ attempts, error, due_at }) =>
    `Attempt ${attempts} failed; the next is at ${due_at.slice(11, 19)} UTC${because(error)}`,
  'event-ended': ({ status, outcome, event_count: n }, say) =>
    `${n && n > 1 ? `${n} events` : 'The event'} ended as ${say(status)}. ${outcomeText(outcome)}`,
  'event-reopened': ({ by }) => `${brief(by)} returned the dead letter to the inbox`,
  'event-discarded': ({ by }) => `${brief(by)} discarded the dead letter`,
  'event-claimed': ({ by, lease_until }) => `${brief(by)} claimed it until ${lease_until.slice(11, 19)} UTC`,
  'event-returned': ({ why }) => `The claim was returned${because(why)}`,
  'turn-started': ({ agent, considered, attempts }) => {
    const n = considered.reduce((sum, [first, last]) => sum + last - first + 1, 0)
    return `The agent ${agent} considers ${counted(n, 'event')}${attempts > 1 ? `, attempt ${attempts}` : ''}`
  },
  'turn-ended': (entry, say) => {
    const { status, result, error } = entry
    return `The turn ended: ${say(status)}${status === 'result' ? ` ${brief(result)}` : because(error)}${failuresText(entry)}${entry.usage.model_calls > 0 ? tokens(entry) : ''}`
  },
  'turn-cancelled': ({ by, reason }) => `${brief(by)} cancelled the turn${because(reason)}`,
  'dry-turn-ended': ({ why, status, error }, say) =>
    `The slow path was asked again without effects (${why.replace('-', ' ')}): ${say(status)}${because(error)}`,
  'model-called': (entry) =>
    entry.status === 'ok' ? `The model ${entry.model} answered${tokens(entry)}` : `The model ${entry.model} failed${because(entry.error)}`,
  'model-lost': ({ error }) => `The model provider is unavailable; events that need it wait${because(error)}`,
  'model-restored': ({ waited_ms }, say) => `The model provider answers again, after ${say(waited_ms)}`,
  'model-hurried': ({ by }) => `${by} had the scope ask the model at once`,
  'decision-made': (entry) => {
    const { model, status, error, middle } = entry
    if (status !== 'ok') return `The decision model ${model} failed${because(error)}`
    if (!middle) return `The decision model ${model} answered${tokens(entry)}`
    const { action, left, detail, score } = middle
    const sure = `${Math.round(score * 100)} % sure`
    if (left !== null) return `The decision model is ${sure} and leaves it to the turn${because(detail ?? left.replace('_', ' '))}`
    return `The decision model is ${sure}${action ? ` and decides to ${actionText(action)}` : ''}`
  },
  'effect-started': ({ tool, input }) => `Calls ${tool} with ${brief(input)}`,
  'effect-ended': ({ tool, status, output, error }, say) =>
    `${tool}: ${say(status)}${error === null ? (output === null || output === undefined ? '' : ` ${brief(output)}`) : because(error)}`,
  'reply-sent': ({ content, reflex_id }) => `${reflex_id === null ? 'The agent' : `Reflex ${reflex_id}`} replies “${brief(content)}”`,
  'call-received': ({ by, call, name }) => `${brief(by)} ${call === 'skill' ? 'proposes the skill' : 'calls'} ${name}`,
  'reflex-fired': (entry) =>
    `Reflex ${reflex(entry)} ${entry.state === 'shadow' ? 'in shadow mode would' : 'decided to'} ${actionText(entry.action)}${entry.reused ? '; it was done before' : ''}${licensed(entry)}`,
  'reflex-passed': (entry) =>
    `Reflex ${reflex(entry)} ${passes[entry.reason] ?? `passed (${entry.reason.replace('_', ' ')})`}${because(entry.error ?? entry.detail)}`,
  'action-ended': (entry, say) =>
    `The action ${entry.action_type.replace('_', ' ')} of ${reflex(entry)}: ${say(entry.status)}${because(entry.error)}`,
  'reflex-compared': (entry) =>
    `Reflex ${reflex(entry)} in shadow mode ${entry.agreed === null ? 'could not be compared' : entry.agreed ? 'agreed with the decision' : 'disagreed with the decision'}`,
  'reflex-overruled': (entry) => `The action of ${reflex(entry)} was undone${because(entry.reason)}`,
  'reflex-moved': (entry) => `Reflex ${reflex(entry)} moved from ${entry.from} to ${entry.to}${because(entry.reason)}`,
  'reflex-audited': (entry) =>
    `The decision of ${reflex(entry)} was audited by ${entry.by === null ? 'the slow path' : brief(entry.by)}: ${entry.agreed === null ? 'not comparable' : entry.agreed ? 'agreed' : 'disagreed'}${because(entry.reason)}`,
  'decision-judged': ({ by, right, reason }) => `${brief(by)} judged the decision ${right ? 'right' : 'wrong'}${because(reason)}`,
  'certificate-changed': (entry) =>
    `The certificate of ${reflex(entry)}: ${entry.change.replace('_', ' ')}${entry.event_type === null ? '' : ` for ${entry.event_type}`}${because(entry.reason)}`,
  'teacher-changed': ({ teacher, reason }) => `The slow path that decides is now ${teacher.model}${because(reason)}`,
  'filter-failed': ({ agent, error }) => `A filter of ${agent} failed${because(error)}`,
  'scratch-set': ({ key, value, reflex_id }) => `Reflex ${reflex_id} set ${brief(key)} in the scratch to ${brief(value)}`,
  'settings-changed': ({ by, patch }) => `${brief(by)} changed settings: ${brief(patch)}`,
  'timer-set': ({ by, timer_name, schedule }) => `${brief(by)} set the timer ${timer_name}: ${brief(schedule)}`,
  'timer-removed': ({ by, timer_name }) => `${brief(by)} removed the timer ${timer_name}`,
  'timer-skipped': ({ timer_name, reason }) => `A tick of the timer ${timer_name} was skipped${because(reason)}`,
  'clock-corrected': ({ ahead_ms }, say) => `The clock had run ahead by ${say(ahead_ms)} and was corrected`,
  'work-parked': ({ work, reason }) => `Work (${work}) is parked and no longer started${because(reason)}`,
  'alert-raised': ({ summary }) => `Alert: ${brief(summary)}`,
  'notice-ended': ({ notice_type, webhook, status, error }, say) =>
    `The notice ${notice_type} to ${brief(webhook)}: ${say(status)}${because(error)}`,
  'replay-done': ({ by, compared, changed }) => `${brief(by)} replayed ${counted(compared, 'decision')}; ${changed} changed`,
  'context-trimmed': ({ count }) => `${counted(count, 'event')} left the context, which is full`,
  'bulletin-built': ({ cards }) => `The bulletin offers ${Array.isArray(cards) ? counted(cards.length, 'skill') : 'some skills'}`,
  'blackboard-seeded': () => 'The blackboard was seeded',
  'blackboard-changed': ({ changes }) => `The blackboard changed: ${brief(changes)}`,
  'skills-degraded': () => 'The registry of skills is unavailable; the copy of the scope is used',
  'skills-restored': () => 'The registry of skills is available again',
  'skill-decided': (entry) => `The gate decided on the ${skill(entry)}: ${brief(verdictOf(entry['decision']))}`,
  'skill-refused': (entry) => `The ${skill(entry)} was refused${because(brief(entry['reason']))}`,
  'skill-slots-parsed': ({ attempts }) => `Missing inputs were parsed from the text: ${brief(attempts)}`,
  'skill-guard-evaluated': ({ expression, outcome }) => `The guard ${brief(expression)} is ${brief(outcome)}`,
  'skill-started': (entry) => `The ${skill(entry)} runs with ${brief(entry['inputs'])}`,
  'skill-resumed': (entry) => `The ${skill(entry)} continues after a restart`,
  'skill-reused': (entry) => `The ${skill(entry)} reuses the outputs of an earlier run`,
  'skill-step-ended': (entry, say) =>
    `Step ${brief(entry['step'] ?? entry['index'] ?? '')} ended: ${say(brief(entry['status']))}${because(textOf(entry['error']))}`,
  'skill-compensation-ended': (entry, say) => `A step was undone: ${say(brief(entry['status']))}${because(textOf(entry['error']))}`,
  'skill-applied': (entry, say) => `The ${skill(entry)} ended: ${say(brief(entry['status']))}${because(textOf(entry['detail']))}`,
  'approval-requested': (entry) => `The ${skill(entry)} waits for approval${because(textOf(entry['reason']))}`,
  'approval-decided': (entry, say) => `${brief(entry['by'] ?? 'Somebody')} decided on the approval: ${say(brief(entry['status']))}`,
}

export const kinds: readonly string[] = Object.keys(sentences).sort()

/** Fields of every entry, which the line of an unknown kind leaves out. */
const HEAD = new Set(['seq', 'at', 'kind', 'trace_id', 'span_id', 'parent_id', 'event_ids', 'event_count', 'duration_ms'])

/** A plain sentence; the fields of a kind that this version does not know, as they are. */
export function sentenceOf(entry: LogEntry, say: Say): string {
  const tell = Object.hasOwn(sentences, entry.kind) ? (sentences[entry.kind] as (entry: LogEntry, say: Say) => string) : null
  try {
    if (tell) return tell(entry, say)
  } catch {
    // An entry of another version may lack a field.
  }
  return brief(Object.fromEntries(Object.entries(entry).filter(([name]) => !HEAD.has(name))))
}
