import type { JsonFields } from '../../../base/json.ts'
import { sameSkill, type Decision, type ReflexRecording } from '../../../contract/reflex.ts'
import type { ScopeApi, RecordingPage } from '../../../contract/scope-api.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { Event } from '../../../core/event.ts'
import type { ReflexContext } from '../../../reflexes/reflex-context.ts'
import type { GateDecision } from '../../../skills/gate/decision.ts'
import { decide } from '../../../skills/gate/gate.ts'
import { placeOf } from '../../../skills/manifest/compat.ts'
import type { Manifest } from '../../../skills/manifest/manifest.ts'
import { emptyBlackboard } from '../../../skills/plan/blackboard.ts'
import { agentRoles, entityTypesIn, ownText } from '../../../skills/session/context.ts'
import type { Evaluated } from './trial.ts'

const MOST_CONTEXTS = 5000
const MOST_TOLD = 5
const PAGE = 100

/** The gate's decision, without its reasons: they would quote the manifest. */
type Ended = 'applied' | 'needs_approval' | 'clarify' | 'compat' | 'preconditions' | 'score' | 'policy'

/**
 * Asks the gate about each recorded event if the skill would have been applied, without running it.
 * Inputs are the event's fields of their names; probes are not called.
 */
export async function evaluateSkill(
  scope: Pick<ScopeApi, 'chain' | 'recordings' | 'state'>,
  manifest: Manifest,
  since: number,
): Promise<Evaluated> {
  const [{ settings }, { turn }] = await Promise.all([scope.state(), scope.chain()])
  const tools = turn?.tools ?? []
  const evaluation = new SkillEvaluation(manifest)
  for (let after: number | null = 0, left = MOST_CONTEXTS; after !== null;) {
    const page: RecordingPage = await scope.recordings({ since, after, limit: PAGE })
    for (const text of page.recordings) {
      if (left <= 0) return { ...evaluation.report(), truncated: true }
      const recording = JSON.parse(text) as ReflexRecording & { context: ReflexContext }
      const event = recording.context.event as Event & JsonFields
      evaluation.add(recording, endOf(decide(requestOf(manifest, event, { settings, tools, now: Date.parse(recording.at) || 0 }))))
      left -= 1
    }
    after = page.next
  }
  return { ...evaluation.report(), truncated: false }
}

function requestOf(
  manifest: Manifest,
  event: Event & JsonFields,
  { settings, tools, now }: { settings: Settings; tools: readonly string[]; now: number },
) {
  const inputs = manifest.signature.inputs.flatMap(({ name }) => (Object.hasOwn(event, name) ? [[name, event[name] ?? null] as const] : []))
  return {
    manifest,
    state: 'active' as const,
    compat: placeOf(settings),
    inputs: Object.fromEntries(inputs),
    inputs_from: 'caller' as const,
    text: ownText(event),
    goal_labels: settings.goal_labels,
    entity_types: entityTypesIn([event]),
    blackboard: {
      ...emptyBlackboard(),
      ctx: settings.blackboard.ctx ?? {},
      env: settings.blackboard.env ?? {},
      policy: settings.blackboard.policy ?? {},
    },
    tools,
    recent_success: false,
    roles: agentRoles(settings),
    last_run_at: null,
    running: 0,
    ...(settings.tau === undefined ? {} : { default_tau_ratio: settings.tau }),
    now,
  }
}

function endOf({ verdict, stage }: GateDecision): Ended {
  if (verdict === 'allow') return 'applied'
  return verdict === 'needs_approval' || verdict === 'clarify' ? verdict : (stage ?? 'policy')
}

/** Compares what the gate decides with what was done: the same skill, or the tools of its plan. */
class SkillEvaluation {
  readonly #manifest: Manifest
  readonly #contexts = { recorded: 0, rebuilt: 0, undecided: 0 }
  readonly #stages: Record<Ended, number> = { applied: 0, needs_approval: 0, clarify: 0, compat: 0, preconditions: 0, score: 0, policy: 0 }
  readonly #counts = { agreed: 0, disagreed: 0, not_compared: 0, missed: 0 }
  readonly #disagreements: { event_id: string; action: { action_type: 'run_skill' }; decided: Decision['acts'] }[] = []

  constructor(manifest: Manifest) {
    this.#manifest = manifest
  }

  add({ source, event_id, decision }: Pick<ReflexRecording, 'source' | 'event_id' | 'decision'>, ended: Ended): void {
    this.#contexts[source] += 1
    this.#stages[ended] += 1
    if (decision === null) this.#contexts.undecided += 1
    const did = decision && this.#isDone(decision)
    if (ended !== 'applied') this.#counts.missed += did === true ? 1 : 0
    else if (!decision) this.#counts.not_compared += 1
    else if (did) this.#counts.agreed += 1
    else {
      this.#counts.disagreed += 1
      if (this.#disagreements.length < MOST_TOLD)
        this.#disagreements.push({ event_id, action: { action_type: 'run_skill' }, decided: decision.acts })
    }
  }

  report() {
    const { missed, ...counts } = this.#counts
    const fires = this.#stages.applied
    const compared = counts.agreed + counts.disagreed
    const seen = Object.values(this.#stages).reduce((sum, count) => sum + count, 0)
    return {
      contexts: this.#contexts,
      fires,
      passes: { null: seen - fires, error: 0, limit: 0, invalid_action: 0 },
      agreement: { ...counts, rate: compared === 0 ? null : counts.agreed / compared },
      missed,
      disagreements: this.#disagreements,
      stages: this.#stages,
    }
  }

  #isDone({ acts }: Decision): boolean {
    const { id, plan } = this.#manifest
    if (acts.some((act) => act.act === 'run_skill' && sameSkill(act.skill_id, id))) return true
    return plan.steps.every(({ tool }) => acts.some((act) => act.act === 'call_tool' && act.tool === tool))
  }
}
