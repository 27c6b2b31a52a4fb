import type { ArtifactKind } from '../../../contract/artifact.ts'
import type { Family } from '../contract/statistics.ts'
import { percentile } from '../../../reflexes/metrics.ts'

/** Sums by name. A histogram has a name for each of its buckets. */
export type Sums = Readonly<Record<string, number>>
type Value = number | null
type RegistryCount = 'active' | 'learned' | 'evicted' | 'failed'
export type Metric = {
  family: Family
  unit: 'count' | 'share' | 'usd' | 'ms' | 'time'
  description: string
  /** The names that it is computed from. */
  keys: readonly string[]
  /** `turns`: the sums of all turns, for metrics with `against`. */
  of: (sums: Sums, turns: Sums) => Value
  /** Compares with the turns of the same range. */
  against?: true
  /** The time of the latest passed test, instead of sums. */
  is_last_pass?: true
  /** A sum of what model calls cost. */
  is_cost?: true
  /** The current number of versions of a kind, instead of sums. */
  registry?: { kind: ArtifactKind; of: RegistryCount }
}

export const TURN_KEYS = ['turns', 'turn_cost_usd', 'turn_ms']

const numberOf = (sums: Sums, key: string): number => sums[key] ?? 0
const ratio = (part: number, whole: number): Value => (whole === 0 ? null : part / whole)

export function histogramOf(sums: Sums, name: string): { buckets: Record<string, number>; count: number } {
  const found = Object.entries(sums).filter(([key]) => key.startsWith(`${name}.`))
  const buckets = Object.fromEntries(found.map(([key, samples]) => [key.slice(name.length + 1), samples]))
  return { buckets, count: found.reduce((sum, [, samples]) => sum + samples, 0) }
}

function percentileOf(sums: Sums, name: string, share: number): Value {
  const histogram = histogramOf(sums, name)
  return histogram.count === 0 ? null : Math.round(percentile(histogram, share))
}

const counted = (family: Family, key: string, description: string, unit: Metric['unit'] = 'count'): Metric => ({
  family,
  unit,
  description,
  keys: [key],
  of: (sums) => numberOf(sums, key),
})
/** The cost of model calls: answers say also how many of them have no known price. */
const costing = (key: string, description: string): Metric => ({ ...counted('scope', key, description, 'usd'), is_cost: true })
const shared = (family: Family, [part, ...whole]: [string, ...string[]], description: string): Metric => ({
  family,
  unit: 'share',
  description,
  keys: [part, ...whole],
  of: (sums) =>
    ratio(
      numberOf(sums, part),
      whole.reduce((sum, key) => sum + numberOf(sums, key), 0),
    ),
})
const timed = (family: Family, name: string, share: number, description: string): Metric => ({
  family,
  unit: 'ms',
  description,
  keys: [name],
  of: (sums) => percentileOf(sums, name, share),
})
const timedInUs = (name: string, share: number, description: string): Metric => ({
  ...timed('scope', name, share, description),
  of: (sums) => {
    const us = percentileOf(sums, name, share)
    return us === null ? null : us / 1000
  },
})
/** The sums of the turns that did without it. */
const without = (used: Sums, all: Sums): Sums =>
  Object.fromEntries(Object.entries(all).map(([key, value]) => [key, value - (used[key] ?? 0)]))
const compared = (unit: Metric['unit'], description: string, of: (sums: Sums) => Value): Metric => ({
  family: 'skill',
  unit,
  description,
  keys: TURN_KEYS,
  against: true,
  of: (used, all) => {
    const [mine, others] = [of(used), of(without(used, all))]
    return mine === null || others === null ? null : mine - others
  },
})
const absent = (family: Family, unit: Metric['unit'], description: string): Metric => ({
  family,
  unit,
  description,
  keys: family === 'skill' ? ['calls', 'proposals'] : [],
  of: () => null,
})
const registered = (kind: ArtifactKind, of: RegistryCount, description: string): Metric => ({
  ...absent('scope', 'count', description),
  registry: { kind, of },
})
const meanCost = (sums: Sums): Value => ratio(numberOf(sums, 'turn_cost_usd'), numberOf(sums, 'turns'))

const saved = (family: Family, of: string) => ({
  [`${of}.decided`]: counted(family, 'decided', 'Events decided by a reflex, without a model.'),
  [`${of}.saved_model_calls`]: counted(family, 'saved_model_calls', 'Model calls saved, by the average turn of the scope.'),
  [`${of}.saved_tokens`]: counted(family, 'saved_tokens', 'Tokens saved.'),
  [`${of}.saved_cost_usd`]: counted(family, 'saved_cost_usd', 'Money saved.', 'usd'),
})
const proposed = (family: Family, of: string) => ({
  [`${of}.proposals`]: counted(family, 'proposals', 'Proposals that the gate decided on.'),
  [`${of}.fallback_rate`]: shared(
    family,
    ['fallbacks', 'proposals'],
    'Proposals that did not run successfully in a turn that ended with a result, of all proposals.',
  ),
  [`${of}.clarify_rate`]: shared(family, ['clarifies', 'proposals'], 'Proposals that lacked slots, of all proposals.'),
  [`${of}.policy_denials`]: counted(family, 'policy_denials', 'Proposals that the policy denied.'),
})

export const metrics: Readonly<Record<string, Metric>> = {
  'events.accepted': counted('scope', 'accepted', 'Accepted events.'),
  'events.completed': counted('scope', 'completed', 'Completed events.'),
  'events.ignored': counted('scope', 'ignored', 'Ignored events.'),
  'events.dead_lettered': counted('scope', 'dead_lettered', 'Events that became dead letters.'),
  'events.cancelled': counted('scope', 'cancelled', 'Cancelled events.'),
  'events.by_filter': counted('scope', 'by_filter', 'Events decided by a filter.'),
  'events.by_reflex': counted('scope', 'by_reflex', 'Events decided by a reflex.'),
  'events.by_decision': counted('scope', 'by_decision', 'Events decided by the decision model.'),
  'events.by_turn': counted('scope', 'by_turn', 'Events decided by a turn, which asked a model or acted.'),
  'events.by_condition': counted(
    'scope',
    'by_condition',
    'Events that a turn left alone without a model or an act, such as those for which `when` does not hold.',
  ),
  'events.retried': counted('scope', 'retried', 'Attempts that failed and were retried.'),
  turns: counted('scope', 'turns', 'Ended turns.'),
  'turns.failed': counted('scope', 'turns_failed', 'Turns that failed or timed out.'),
  'turns.cost_usd': costing('turn_cost_usd', 'Cost of the turns, without model calls whose price is unknown.'),
  'turns.p50_ms': timed('scope', 'turn_ms', 0.5, 'Median duration of a turn.'),
  'turns.p95_ms': timed('scope', 'turn_ms', 0.95, '95th percentile of the duration of a turn.'),
  'model.calls': counted('scope', 'model_calls', 'Model calls.'),
  'model.failures': counted('scope', 'model_failures', 'Model calls that failed.'),
  'model.input_tokens': counted('scope', 'input_tokens', 'Input tokens.'),
  'model.output_tokens': counted('scope', 'output_tokens', 'Output tokens.'),
  'model.cost_usd': costing('model_cost_usd', 'Cost of the model calls, without those whose price is unknown.'),
  'model.unpriced_calls': counted('scope', 'unpriced_calls', 'Model calls whose price is unknown.'),
  effects: counted('scope', 'effects', 'Ended effects.'),
  'effects.failed': counted('scope', 'effects_failed', 'Effects that failed, or whose outcome is unknown.'),
  'reflexes.fires': counted('scope', 'fires', 'Fires of active reflexes.'),
  'reflexes.fire_share': shared(
    'scope',
    ['decided', 'decided', 'model_calls'],
    'Events decided by a reflex, of those and the model calls.',
  ),
  'reflexes.p95_ms': timedInUs('reflex_us', 0.95, '95th percentile of the duration of a run of a reflex.'),
  'reflexes.evictions': counted('scope', 'evictions', 'Active reflexes that were demoted or suspended.'),
  'reflexes.audits': counted('scope', 'audits', 'Decisions of proven reflexes that the slow path repeated without effects.'),
  'reflexes.audits_disagreed': counted('scope', 'audits_disagreed', 'Audits in which the slow path decided otherwise.'),
  'reflexes.corrections': counted('scope', 'corrections', 'Decisions of reflexes that a turn or a person corrected.'),
  'gate.p50_ms': timedInUs('gate_us', 0.5, 'Median time that the gate takes to decide on a proposal, the control plane included.'),
  'replays.compared': counted('scope', 'replayed', 'Decisions that a pinned replay compared.'),
  'replays.changed': counted('scope', 'replayed_otherwise', 'Decisions that a pinned replay decided otherwise.'),
  dry_turns: counted('scope', 'dry_turns', 'Turns without effects, for audits and to ask again.'),
  'dry_turns.cost_usd': counted('scope', 'dry_turn_cost_usd', 'Cost of the dry turns, which is part of that of the model calls.', 'usd'),
  ...saved('scope', 'reflexes'),
  ...proposed('scope', 'skills'),
  'skills.refusals': counted('scope', 'skill_refusals', 'Proposals refused before or after the gate.'),
  'skills.bulletins': counted('scope', 'bulletins', 'Bulletins of skills that turns showed to their model.'),
  'skills.bulletin_tokens': counted('scope', 'bulletin_tokens', 'Tokens of these bulletins, by an estimate.'),
  'skills.precision_at_1': shared(
    'scope',
    ['ranked_first', 'ranked'],
    'Turns whose first card is a skill that ran successfully, of the turns with a bulletin in which one did.',
  ),
  'skills.active': registered('skill', 'active', 'Active versions of skills that the key may read, now.'),
  'skills.learned': registered('skill', 'learned', 'Versions of skills that agents wrote and the key may read, now.'),
  'reflexes.active': registered('reflex', 'active', 'Active versions of reflexes that the key may read, now.'),
  'reflexes.learned': registered('reflex', 'learned', 'Versions of reflexes that agents wrote and the key may read, now.'),
  'skills.ci_failures': registered('skill', 'failed', 'Versions of skills whose latest test failed and the key may read, now.'),
  'skills.evictions': registered('skill', 'evicted', 'Versions of skills that the sweep deprecated and the key may read, now.'),
  'tool.calls': counted('tool', 'calls', 'Ended calls of the tool; those of all tools are `effects`.'),
  'tool.failed': counted('tool', 'failed', 'Calls of the tool that failed, or whose outcome is unknown.'),
  'reflex.runs': counted('reflex', 'runs', 'Runs, in shadow mode or not.'),
  'reflex.fires': counted('reflex', 'fires', 'Fires, not in shadow mode.'),
  'reflex.shadow_fires': counted('reflex', 'shadow_fires', 'Fires in shadow mode.'),
  'reflex.errors': counted('reflex', 'errors', 'Runs that failed, hit a limit or returned an invalid action.'),
  'reflex.overruled': counted('reflex', 'overruled', 'Actions that a turn or a person later undid.'),
  'reflex.fire_rate': shared('reflex', ['fires', 'runs'], 'Fires of all runs.'),
  'reflex.evictions': counted('reflex', 'evictions', 'Times it was demoted or suspended.'),
  'reflex.audits': counted('reflex', 'audits', 'Decisions that the slow path repeated without effects.'),
  'reflex.audits_disagreed': counted('reflex', 'audits_disagreed', 'Audits in which the slow path decided otherwise.'),
  'reflex.corrections': counted('reflex', 'corrections', 'Decisions that a turn or a person corrected.'),
  ...saved('reflex', 'reflex'),
  'skill.calls': counted('skill', 'calls', 'Started runs.'),
  'skill.success_rate': shared('skill', ['ok', 'ok', 'failed'], 'Successful runs of those that ended. Reused outputs are not runs.'),
  'skill.reused': counted('skill', 'reused', 'Proposals answered by the outputs of an earlier run.'),
  'skill.approvals': counted('skill', 'approvals', 'Approvals requested.'),
  'skill.failure_streak': counted('skill', 'max_streak', 'Longest series of failures without a success, in one scope.'),
  'skill.cost_usd': counted('skill', 'cost_usd', 'Cost of the runs.', 'usd'),
  'skill.p95_ms': timed('skill', 'run_ms', 0.95, '95th percentile of the duration of a run.'),
  'skill.delta_cost_usd': compared('usd', 'Average cost of a turn that ran it, less that of a turn without it.', meanCost),
  'skill.delta_p95_ms': compared('ms', '95th percentile of the duration of a turn that ran it, less that of a turn without it.', (sums) =>
    percentileOf(sums, 'turn_ms', 0.95),
  ),
  'skill.last_ci_pass': {
    ...absent('skill', 'time', 'When the latest test of a version passed, the newest of its versions; null if none did.'),
    is_last_pass: true,
  },
  ...proposed('skill', 'skill'),
}
