import { authorOf, judge, riskIn, type Judged } from '../agent/decisions/middle.ts'
import { permit } from '../agent/permit.ts'
import { Toolbox } from '../agent/toolbox.ts'
import type { Left } from '../contract/decisions/entry.ts'
import type { LogEntry } from '../contract/log-entry.ts'
import type { DecisionModelSetting } from '../contract/settings/decision-model.ts'
import type { Settings } from '../contract/settings/settings.ts'
import type { Acted, Chains } from './chain.ts'
import type { Around } from './given.ts'
import { ownTools, recordedTools } from './recorded-chain.ts'
import type { RecordedEvent } from './recording.ts'

type DecisionMade = Extract<LogEntry, { kind: 'decision-made' }>
type Middle = NonNullable<DecisionMade['middle']>

/**
 * Compares which requests for a decision are left to the decision model. Its answers are those that
 * were recorded. Returns the calls that would not have been made.
 */
export function replayAsked({ source, comparison }: Around, { acted, decided }: Chains): DecisionMade[] {
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
export function replayMiddle(around: Around): Acted[] {
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
  answers: NonNullable<DecisionMade['answers']>
}

function judgeAgain(
  { found: { event }, settings, setting, middle, answers }: Judging,
  { source, host }: Around,
): Judged & { needs_proof: boolean } {
  const { scope } = source
  const agent = host.agents.agentOf(scope, settings.agent)
  const toolbox = new Toolbox({ scope, agent: () => agent, settings: () => settings, outside: recordedTools([]) })
  toolbox.offer(...ownTools)
  const version = authorOf(setting, middle.version, '')
  const asked = { scope, event, version, toolbox, has_trigger: true, agents: host.agents, scratch: {}, now: 0 }
  const threshold = setting.threshold ?? middle.threshold
  const judged = judge(answers, { setting, event, threshold, permit: (action) => permit(action, asked) })
  // Where a person chose the threshold, only calls that nothing undoes or repeats need proof.
  const needs_proof = setting.threshold === undefined || (judged.action !== null && riskIn(toolbox, judged.action) === 'final')
  return { ...judged, needs_proof }
}

/** Certificates and draws are as recorded. */
const leftByProof = ({ left }: Middle): Left | null => (left === 'proof' || left === 'audit' ? left : null)
