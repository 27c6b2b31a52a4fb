import type { EntryKind, LogEntry, SkillEntryKind } from '../../../../../src/contract/log-entry.ts'
import { duration } from '../../../ui/time.tsx'
import { statusText } from '../../../ui/status.tsx'
import { actionText, brief, failuresText, outcomeText } from '../words.ts'

/** The part of an entry that is kept: its sentence, and the place of its details. */
export type Line = {
  seq: number
  at: string
  kind: string
  trace_id: string
  span_id: string
  ms: number | null
  text: string
  bad: boolean
}

type EntryOf<Kind extends EntryKind> = Extract<LogEntry, { kind: Kind }>
/** The fields of skill entries are as their session writes them. */
type Loose = LogEntry & Record<string, unknown>

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

const events: { [Kind in Extract<EntryKind, `event-${string}`>]: (entry: EntryOf<Kind>) => string } = {
  'event-accepted': ({ event_type, source, via, overlap }) =>
    `${event_type} from ${brief(source)} arrived by ${via}${because(overlap && arrivals[overlap.arrival])}`,
  'event-joined': () => 'The event joined the context',
  'event-retried': ({ attempts, error, due_at }) =>
    `Attempt ${attempts} failed; the next is at ${due_at.slice(11, 19)} UTC${because(error)}`,
  'event-ended': ({ status, outcome, event_count: n }) =>
    `${n && n > 1 ? `${n} events` : 'The event'} ended as ${statusText(status)}. ${outcomeText(outcome)}`,
  'event-reopened': ({ by }) => `${brief(by)} returned the dead letter to the inbox`,
  'event-discarded': ({ by }) => `${brief(by)} discarded the dead letter`,
  'event-claimed': ({ by, lease_until }) => `${brief(by)} claimed it until ${lease_until.slice(11, 19)} UTC`,
  'event-returned': ({ why }) => `The claim was returned${because(why)}`,
}

const turns = {
  'turn-started': ({ agent, considered, attempts }: EntryOf<'turn-started'>) => {
    const n = considered.reduce((sum, [first, last]) => sum + last - first + 1, 0)
    return `The agent ${agent} considers ${n} ${n === 1 ? 'event' : 'events'}${attempts > 1 ? `, attempt ${attempts}` : ''}`
  },
  'turn-ended': (entry: EntryOf<'turn-ended'>) => {
    const { status, result, error } = entry
    return `The turn ended: ${statusText(status)}${status === 'result' ? ` ${brief(result)}` : because(error)}${failuresText(entry)}${entry.usage.model_calls > 0 ? tokens(entry) : ''}`
  },
  'turn-cancelled': ({ by, reason }: EntryOf<'turn-cancelled'>) => `${brief(by)} cancelled the turn${because(reason)}`,
  'dry-turn-ended': ({ why, status, error }: EntryOf<'dry-turn-ended'>) =>
    `The slow path was asked again without effects (${why.replace('-', ' ')}): ${statusText(status)}${because(error)}`,
  'model-called': (entry: EntryOf<'model-called'>) =>
    entry.status === 'ok' ? `The model ${entry.model} answered${tokens(entry)}` : `The model ${entry.model} failed${because(entry.error)}`,
  'model-lost': ({ error }: EntryOf<'model-lost'>) => `The model provider is unavailable; events that need it wait${because(error)}`,
  'model-restored': ({ waited_ms }: EntryOf<'model-restored'>) => `The model provider answers again, after ${duration(waited_ms)}`,
  'model-hurried': ({ by }: EntryOf<'model-hurried'>) => `${by} had the scope ask the model at once`,
  'decision-made': (entry: EntryOf<'decision-made'>) => {
    const { model, status, error, middle } = entry
    if (status !== 'ok') return `The decision model ${model} failed${because(error)}`
    if (!middle) return `The decision model ${model} answered${tokens(entry)}`
    const { action, left, detail, score } = middle
    const sure = `${Math.round(score * 100)} % sure`
    if (left !== null) return `The decision model is ${sure} and leaves it to the turn${because(detail ?? left.replace('_', ' '))}`
    return `The decision model is ${sure}${action ? ` and decides to ${actionText(action)}` : ''}`
  },
  'effect-started': ({ tool, input }: EntryOf<'effect-started'>) => `Calls ${tool} with ${brief(input)}`,
  'effect-ended': ({ tool, status, output, error }: EntryOf<'effect-ended'>) =>
    `${tool}: ${statusText(status)}${error === null ? (output === null || output === undefined ? '' : ` ${brief(output)}`) : because(error)}`,
  'reply-sent': ({ content, reflex_id }: EntryOf<'reply-sent'>) =>
    `${reflex_id === null ? 'The agent' : `Reflex ${reflex_id}`} replies “${brief(content)}”`,
  'call-received': ({ by, call, name }: EntryOf<'call-received'>) =>
    `${brief(by)} ${call === 'skill' ? 'proposes the skill' : 'calls'} ${name}`,
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

const reflexes = {
  'reflex-fired': (entry: EntryOf<'reflex-fired'>) =>
    `Reflex ${reflex(entry)} ${entry.state === 'shadow' ? 'in shadow mode would' : 'decided to'} ${actionText(entry.action)}${entry.reused ? '; it was done before' : ''}${licensed(entry)}`,
  'reflex-passed': (entry: EntryOf<'reflex-passed'>) =>
    `Reflex ${reflex(entry)} ${passes[entry.reason] ?? `passed (${entry.reason.replace('_', ' ')})`}${because(entry.error ?? entry.detail)}`,
  'action-ended': (entry: EntryOf<'action-ended'>) =>
    `The action ${entry.action_type.replace('_', ' ')} of ${reflex(entry)}: ${statusText(entry.status)}${because(entry.error)}`,
  'reflex-compared': (entry: EntryOf<'reflex-compared'>) =>
    `Reflex ${reflex(entry)} in shadow mode ${entry.agreed === null ? 'could not be compared' : entry.agreed ? 'agreed with the decision' : 'disagreed with the decision'}`,
  'reflex-overruled': (entry: EntryOf<'reflex-overruled'>) => `The action of ${reflex(entry)} was undone${because(entry.reason)}`,
  'reflex-moved': (entry: EntryOf<'reflex-moved'>) =>
    `Reflex ${reflex(entry)} moved from ${entry.from} to ${entry.to}${because(entry.reason)}`,
  'reflex-audited': (entry: EntryOf<'reflex-audited'>) =>
    `The decision of ${reflex(entry)} was audited by ${entry.by === null ? 'the slow path' : brief(entry.by)}: ${entry.agreed === null ? 'not comparable' : entry.agreed ? 'agreed' : 'disagreed'}${because(entry.reason)}`,
  'decision-judged': ({ by, right, reason }: EntryOf<'decision-judged'>) =>
    `${brief(by)} judged the decision ${right ? 'right' : 'wrong'}${because(reason)}`,
  'certificate-changed': (entry: EntryOf<'certificate-changed'>) =>
    `The certificate of ${reflex(entry)}: ${entry.change.replace('_', ' ')}${entry.event_type === null ? '' : ` for ${entry.event_type}`}${because(entry.reason)}`,
  'teacher-changed': ({ teacher, reason }: EntryOf<'teacher-changed'>) =>
    `The slow path that decides is now ${teacher.model}${because(reason)}`,
}

const upkeep = {
  'filter-failed': ({ agent, error }: EntryOf<'filter-failed'>) => `A filter of ${agent} failed${because(error)}`,
  'scratch-set': ({ key, value, reflex_id }: EntryOf<'scratch-set'>) =>
    `Reflex ${reflex_id} set ${brief(key)} in the scratch to ${brief(value)}`,
  'settings-changed': ({ by, patch }: EntryOf<'settings-changed'>) => `${brief(by)} changed settings: ${brief(patch)}`,
  'timer-set': ({ by, timer_name, schedule }: EntryOf<'timer-set'>) => `${brief(by)} set the timer ${timer_name}: ${brief(schedule)}`,
  'timer-removed': ({ by, timer_name }: EntryOf<'timer-removed'>) => `${brief(by)} removed the timer ${timer_name}`,
  'timer-skipped': ({ timer_name, reason }: EntryOf<'timer-skipped'>) => `A tick of the timer ${timer_name} was skipped${because(reason)}`,
  'clock-corrected': ({ ahead_ms }: EntryOf<'clock-corrected'>) => `The clock had run ahead by ${duration(ahead_ms)} and was corrected`,
  'work-parked': ({ work, reason }: EntryOf<'work-parked'>) => `Work (${work}) is parked and no longer started${because(reason)}`,
  'alert-raised': ({ summary }: EntryOf<'alert-raised'>) => `Alert: ${brief(summary)}`,
  'notice-ended': ({ notice_type, webhook, status, error }: EntryOf<'notice-ended'>) =>
    `The notice ${notice_type} to ${brief(webhook)}: ${statusText(status)}${because(error)}`,
  'replay-done': ({ by, compared, changed }: EntryOf<'replay-done'>) => `${brief(by)} replayed ${compared} decisions; ${changed} changed`,
  'context-trimmed': ({ count }: EntryOf<'context-trimmed'>) => `${count} events left the context, which is full`,
}

const skills: { [Kind in SkillEntryKind]: (entry: Loose) => string } = {
  'bulletin-built': ({ cards }) => `The bulletin offers ${Array.isArray(cards) ? cards.length : 'some'} skills`,
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
  'skill-step-ended': (entry) =>
    `Step ${brief(entry['step_id'] ?? entry['index'] ?? '')} ended: ${statusText(brief(entry['status']))}${because(textOf(entry['error']))}`,
  'skill-compensation-ended': (entry) => `A step was undone: ${statusText(brief(entry['status']))}${because(textOf(entry['error']))}`,
  'skill-applied': (entry) => `The ${skill(entry)} ended: ${statusText(brief(entry['status']))}${because(textOf(entry['detail']))}`,
  'approval-requested': (entry) => `The ${skill(entry)} waits for approval${because(textOf(entry['reason']))}`,
  'approval-decided': (entry) =>
    `${brief(entry['by'] ?? 'Somebody')} decided on the approval: ${statusText(brief(entry['status'] ?? entry['decision'] ?? ''))}`,
}

const textOf = (value: unknown): string | null => (value === null || value === undefined ? null : brief(value))
const verdictOf = (decision: unknown): unknown =>
  typeof decision === 'object' && decision !== null && 'verdict' in decision ? decision.verdict : decision

/** A kind that the log gets and that has no sentence fails to compile. */
const known = { ...events, ...turns, ...reflexes, ...upkeep, ...skills } satisfies Record<EntryKind, unknown>
export const kinds: readonly string[] = Object.keys(known).sort()

/** Fields of every entry, which the line of an unknown kind leaves out. */
const HEAD = new Set(['seq', 'at', 'kind', 'trace_id', 'span_id', 'parent_id', 'event_ids', 'event_count', 'duration_ms'])

/** One plain sentence; the fields of a kind that this page does not know, as they are. */
function sentence(entry: LogEntry): string {
  const tell = Object.hasOwn(known, entry.kind) ? (known[entry.kind] as (entry: LogEntry) => string) : null
  try {
    if (tell) return tell(entry)
  } catch {
    // An entry of another version may lack a field.
  }
  return brief(Object.fromEntries(Object.entries(entry).filter(([name]) => !HEAD.has(name))))
}

const BAD = new Set(['failed', 'timeout', 'unknown', 'dead_lettered', 'error', 'partial_failure', 'lost'])

export function lineOf(entry: LogEntry): Line {
  const { seq, at, kind, trace_id, span_id, duration_ms: ms } = entry
  const { status, reason } = entry as Loose
  const bad =
    /-(?:failed|lost|parked|degraded|refused|overruled)$/.test(kind) ||
    BAD.has(String(status)) ||
    (kind === 'reflex-passed' && reason === 'error')
  return { seq, at, kind, trace_id, span_id, ms, text: sentence(entry), bad }
}
