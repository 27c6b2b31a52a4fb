import { equivalenceOf, type ReplayReport, type ReplaySide } from './contract/replay.ts'
import type { Usage, LogEntry, EntryKind, EntryOf } from '../../contract/log-entry.ts'
import { replayChains, type Acted, type Chains } from './chain.ts'
import { replayActions } from './lane.ts'
import { asRecorded, type Around } from './given.ts'
import { replayTurns } from './turn.ts'
import type { Recording, RecordedEvent } from './recording.ts'
import { Comparison } from './report.ts'
import { Sessions } from './skills/sessions.ts'
import { Source, type ReplayHost } from './source.ts'
import { authorOf, judge, type MiddleJudgement } from '../decisions/agent/middle.ts'
import { riskIn } from '../../agent/risk.ts'
import { permit } from '../../agent/permit.ts'
import { Toolbox } from '../../agent/toolbox.ts'
import type { Left } from '../decisions/contract/entry.ts'
import type { DecisionModelSetting } from '../decisions/contract/setting.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { ownTools, recordedTools } from './recorded-chain.ts'
import { certificate } from '../../contract/certificate.ts'
import { verdictOf } from '../../evidence/certificate.ts'
import { probesIn } from './recorded-effects.ts'

/** The decisions and outputs of a log, and how the report names them. Other entries are facts. */
const DECISIONS: Partial<Record<EntryKind, string>> = {
  'event-accepted': 'filter',
  'reflex-fired': 'reflex',
  'reflex-passed': 'reflex',
  'reflex-compared': 'trial',
  'reflex-moved': 'trial',
  'reflex-overruled': 'trial',
  'action-ended': 'action',
  'scratch-set': 'action',
  'reply-sent': 'action',
  'turn-ended': 'turn',
  'model-called': 'model',
  'decision-made': 'decision',
  'effect-ended': 'effect',
  'timer-skipped': 'timer',
  'bulletin-built': 'bulletin',
  'skill-decided': 'gate',
  'skill-refused': 'skill',
  'skill-slots-parsed': 'slots',
  'skill-guard-evaluated': 'step',
  'skill-started': 'plan',
  'skill-resumed': 'plan',
  'skill-reused': 'plan',
  'skill-applied': 'plan',
  'skill-step-ended': 'step',
  'skill-compensation-ended': 'step',
  'blackboard-changed': 'plan',
  'approval-requested': 'approval',
}

const REASONS: Partial<Record<EntryKind, string>> = {
  'reflex-moved': 'the metrics of the reflex in this scope are not in the recording',
  'reflex-overruled': 'the earlier actions of the reflex are not in the recording',
  'timer-skipped': 'the schedule of the timer is not in the recording',
}

/** Tests each proof again, by the counts of its certificate. */
function replayProofs({ source, comparison }: Around): void {
  for (const entry of source.entriesOf('certificate-changed')) {
    const { change, event_type, risk, act } = entry
    if (change !== 'proven' && change !== 'refuted') continue
    const parsed = certificate.safeParse(entry.certificate)
    const stratum = parsed.data?.strata.find((one) => one.event_type === event_type && one.risk === risk && one.act === act)
    if (parsed.success && stratum) comparison.compare(entry, 'trial', { recorded: change, replayed: verdictOf(parsed.data, stratum) })
    else comparison.cannot(entry, 'trial', 'the counts of the certificate are not in the recording')
  }
}

/** Reports each decision that no part of the replay has compared: none counts as equal unseen. */
function reportUnseen({ source, comparison }: Around): void {
  const reasons = new Map(comparison.unknown.map(({ span_id, reason }) => [span_id, reason]))
  const calls = new Set(source.entriesOf('call-received').map(({ span_id }) => span_id))
  const read = probesIn(source)
  for (const entry of source.recording.entries) {
    const kind = DECISIONS[entry.kind]
    if (kind === undefined || comparison.covered.has(entry) || ('effect_id' in entry && read.has(String(entry.effect_id)))) continue
    comparison.cannot(entry, kind, reasonOf(entry, { reasons, calls }))
  }
}

function reasonOf(
  { kind, span_id, parent_id }: LogEntry,
  { reasons, calls }: { reasons: Map<string, string>; calls: Set<string> },
): string {
  const known = REASONS[kind] ?? reasons.get(span_id) ?? reasons.get(parent_id ?? '')
  if (known !== undefined) return known
  return calls.has(parent_id ?? '') ? 'a request from outside called it' : 'no replayed decision led to it'
}

type Middle = NonNullable<EntryOf<'decision-made'>['middle']>

/**
 * Compares which requests for a decision are left to the decision model. Its answers are those that
 * were recorded. Returns the calls that would not have been made.
 */
function replayAsked({ source, comparison }: Around, { acted, decided }: Chains): EntryOf<'decision-made'>[] {
  return source.entriesOf('decision-made').filter((made) => {
    const [id = ''] = made.event_ids
    if (made.middle) return false
    if (made.audit) {
      comparison.same(made, 'decision')
      return false
    }
    if (!decided.has(id)) {
      comparison.cannot(made, 'decision', 'the decision of the reflexes could not be made again')
      return false
    }
    const answering = acted.find(({ event, fire }) => event.id === id && fire.action.action_type !== 'escalate')
    if (!answering) comparison.same(made, 'decision')
    else comparison.diverge(made, 'decision', { path: '', recorded: 'asked', replayed: `answered by ${answering.fire.version.id}` })
    return answering !== undefined
  })
}

/**
 * Judges the answers of the decision model between reflexes and turns again: the recorded answer,
 * with the settings in force. Returns the actions that are carried out.
 */
function replayMiddle(around: Around): Acted[] {
  const { source, given, comparison, host } = around
  return source.entriesOf('decision-made').flatMap((made): Acted[] => {
    const { middle, answers } = made
    if (!middle) return []
    const found = source.eventOf(made.event_ids[0] ?? '')
    const settings = given.basisOf(middle)?.settings
    if (!found || !settings) {
      comparison.cannot(made, 'decision', found ? 'the settings in force are not in the recording' : 'the event is not in the recording')
      return []
    }
    const setting = settings.decision_model
    const recorded = { action: middle.action, left: middle.left }
    if (!setting) {
      comparison.diverge(made, 'decision', { path: '', recorded, replayed: 'not asked' })
      return []
    }
    if (!answers) {
      comparison.same(made, 'decision')
      return []
    }
    const judged = judgeAgain({ found, settings, setting, middle, answers }, around)
    const left = judged.left ?? (judged.needs_proof ? leftByProof(middle) : null)
    const same = comparison.compare(made, 'decision', { recorded, replayed: host.cleaner(settings)({ action: judged.action, left }) })
    if (!same && (left === null) !== (middle.left === null)) comparison.cannot(made, 'turn', 'the event would be decided elsewhere')
    const { action, permitted } = judged
    if (left !== null || !action || !permitted) return []
    const version = authorOf(setting, middle.version, '')
    return [{ fire: { version, action, permitted, reused: false }, event: found.event, settings, entry: made }]
  })
}

type Judging = {
  found: RecordedEvent
  settings: Settings
  setting: DecisionModelSetting
  middle: Middle
  answers: NonNullable<EntryOf<'decision-made'>['answers']>
}

function judgeAgain(
  { found: { event }, settings, setting, middle, answers }: Judging,
  { source, host }: Around,
): MiddleJudgement & { needs_proof: boolean } {
  const { scope } = source
  const agent = host.agents.agentOf(scope, settings.agent)
  const toolbox = new Toolbox({ scope, agent: () => agent, settings: () => settings, outside: recordedTools([]) })
  toolbox.offer(...ownTools)
  const version = authorOf(setting, middle.version, '')
  const asked = { scope, event, version, toolbox, agents: host.agents, scratch: {}, now: 0 }
  const threshold = setting.threshold ?? middle.threshold
  const judged = judge(answers, { setting, event, threshold, permit: (action) => permit(action, asked) })
  // If a person chose the threshold, only calls that nothing undoes or repeats need proof.
  const needs_proof = setting.threshold === undefined || (judged.action !== null && riskIn(toolbox, judged.action) === 'final')
  return { ...judged, needs_proof }
}

/** Certificates and draws are as recorded. */
const leftByProof = ({ left }: Middle): Left | null => (left === 'proof' || left === 'audit' ? left : null)

/**
 * Decides again from a recording, with the functions of the live path, and compares every decision
 * and output. Pure: it asks no model, calls no tool and writes nothing.
 */
export async function replay(recording: Recording, host: ReplayHost): Promise<ReplayReport> {
  const source = new Source(recording)
  const around = { source, host, given: asRecorded(source), comparison: new Comparison() }
  const { recorded, replayed } = await decideAgain(around)
  const { compared, changed, divergences, unknown } = around.comparison
  const equivalent = equivalenceOf({ changed, unknown: unknown.length })
  const { trace_id, complete } = recording
  return { trace_id, mode: 'pinned', complete, equivalent, compared, changed, divergences, unknown, recorded, replayed }
}

/** Makes all decisions of a recording again with what is given, and compares them. */
export async function decideAgain(around: Around): Promise<{ recorded: ReplaySide; replayed: ReplaySide }> {
  const sessions = new Sessions(around)
  const { computing } = around.host
  const chains = await computing.run(replayChains(around))
  chains.acted.push(...replayMiddle(around))
  await replayActions(around, chains, sessions)
  const spared = replayAsked(around, chains)
  const saved = await replayTurns(around, sessions)
  await sessions.replayRest()
  replayProofs(around)
  if (around.given.departures === null) reportUnseen(around)
  const recorded = recordedSide(around.source)
  const effects = recorded.effects - saved.effects
  const duration_ms = recorded.duration_ms - saved.duration_ms
  return { recorded, replayed: { effects, usage: less(recorded.usage, [...saved.calls, ...spared]), duration_ms } }
}

function recordedSide(source: Source): ReplaySide {
  const none = { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 }
  const times = source.recording.entries.map(({ at }) => Date.parse(at))
  const duration_ms = times.length === 0 ? 0 : Math.max(...times) - Math.min(...times)
  return {
    usage: summed(none, source.entriesOf('model-called', 'decision-made'), 1),
    effects: source.entriesOf('effect-ended').length,
    duration_ms,
  }
}

const less = (usage: Usage, calls: readonly Paid[]): Usage => summed(usage, calls, -1)

type Paid = { usage: Usage }

function summed(usage: Usage, calls: readonly Paid[], sign: 1 | -1): Usage {
  const sum = { ...usage }
  for (const { usage: one } of calls) {
    sum.input_tokens += sign * one.input_tokens
    sum.output_tokens += sign * one.output_tokens
    sum.model_calls += sign * one.model_calls
    sum.cost_usd = sum.cost_usd === null || one.cost_usd === null ? null : sum.cost_usd + sign * one.cost_usd
  }
  return sum
}
