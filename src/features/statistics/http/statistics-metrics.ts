import type { ArtifactKind } from '../../../contract/artifact.ts'
import { histogramOf, type Family, type MetricSums } from '../contract/statistics.ts'
import { counts, type CountName } from '../../../traces/entries/counts.ts'
import { clopperPearsonHigh } from '../../../evidence/binomial.ts'
import { percentile } from '../../../reflexes/metrics.ts'

type Value = number | null
type RegistryCount = 'active' | 'learned' | 'evicted' | 'failed'
export type Metric = {
  family: Family
  unit: 'count' | 'share' | 'usd' | 'ms' | 'time'
  description: string
  /** The names that it is computed from. */
  keys: readonly string[]
  /** `turns`: the sums of all turns, for metrics with `against`. */
  of: (sums: MetricSums, turns: MetricSums) => Value
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

const numberOf = (sums: MetricSums, key: string): number => sums[key] ?? 0
const ratio = (part: number, whole: number): Value => (whole === 0 ? null : part / whole)

function percentileOf(sums: MetricSums, name: string, share: number): Value {
  const histogram = histogramOf(sums, name)
  return histogram.count === 0 ? null : Math.round(percentile(histogram, share))
}

const descriptions: Record<Family, Readonly<Record<string, { says: string }>>> = counts
const counted = <Of extends Family>(family: Of, key: CountName<Of>, unit: Metric['unit'] = 'count'): Metric => ({
  family,
  unit,
  description: descriptions[family][key]?.says ?? '',
  keys: [key],
  of: (sums) => numberOf(sums, key),
})
/** The cost of model calls: answers say also how many of them have no known price. */
const costing = (key: CountName<'scope'>): Metric => ({ ...counted('scope', key, 'usd'), is_cost: true })
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
const without = (used: MetricSums, all: MetricSums): MetricSums =>
  Object.fromEntries(Object.entries(all).map(([key, value]) => [key, value - (used[key] ?? 0)]))
const compared = (unit: Metric['unit'], description: string, of: (sums: MetricSums) => Value): Metric => ({
  family: 'skill',
  unit,
  description,
  keys: TURN_KEYS,
  against: true,
  of: (used, all) => {
    const mine = of(used)
    const others = of(without(used, all))
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
const meanCost = (sums: MetricSums): Value => ratio(numberOf(sums, 'turn_cost_usd'), numberOf(sums, 'turns'))

const saved = (family: 'scope' | 'reflex', of: string) => ({
  [`${of}.decided`]: counted(family, 'decided'),
  [`${of}.saved_model_calls`]: counted(family, 'saved_model_calls'),
  [`${of}.saved_tokens`]: counted(family, 'saved_tokens'),
  [`${of}.saved_cost_usd`]: counted(family, 'saved_cost_usd', 'usd'),
})
const LEFT_ALONE = ['left_alone', 'left_alone_audits', 'left_alone_missed'] as const

/**
 * The most of the events that reflexes left alone on which the slow path would have acted, with
 * 95 % confidence, by the audits that were drawn by chance. Null if none was left alone.
 */
export function mostMissed(sums: MetricSums): Value {
  const [all, n, k] = LEFT_ALONE.map((key) => numberOf(sums, key)) as [number, number, number]
  if (all === 0) return null
  // Audits of a range may be of decisions before it.
  return Math.min(all, k + Math.ceil(Math.max(0, all - n) * (n === 0 ? 1 : clopperPearsonHigh({ n, k }))))
}

const leftAlone = (family: 'scope' | 'reflex', of: string): Record<string, Metric> => ({
  [`${of}.left_alone`]: counted(family, 'left_alone'),
  [`${of}.most_missed`]: {
    family,
    unit: 'count',
    description: 'Of these, the most on which the slow path would have acted, with 95 % confidence: by audits that were drawn by chance.',
    keys: LEFT_ALONE,
    of: mostMissed,
  },
})
const proposed = (family: 'scope' | 'skill', of: string) => ({
  [`${of}.proposals`]: counted(family, 'proposals'),
  [`${of}.fallback_rate`]: shared(
    family,
    ['fallbacks', 'proposals'],
    'Proposals that did not run successfully in a turn that ended with a result, of all proposals.',
  ),
  [`${of}.clarify_rate`]: shared(family, ['clarifies', 'proposals'], 'Proposals that lacked slots, of all proposals.'),
  [`${of}.policy_denials`]: counted(family, 'policy_denials'),
})

export const metrics: Readonly<Record<string, Metric>> = {
  'events.accepted': counted('scope', 'accepted'),
  'events.completed': counted('scope', 'completed'),
  'events.ignored': counted('scope', 'ignored'),
  'events.dead_lettered': counted('scope', 'dead_lettered'),
  'events.cancelled': counted('scope', 'cancelled'),
  'events.by_filter': counted('scope', 'by_filter'),
  'events.by_reflex': counted('scope', 'by_reflex'),
  'events.by_decision': counted('scope', 'by_decision'),
  'events.by_turn': counted('scope', 'by_turn'),
  'events.by_condition': counted('scope', 'by_condition'),
  'events.retried': counted('scope', 'retried'),
  turns: counted('scope', 'turns'),
  'turns.failed': counted('scope', 'turns_failed'),
  'turns.cost_usd': costing('turn_cost_usd'),
  'turns.p50_ms': timed('scope', 'turn_ms', 0.5, 'Median duration of a turn.'),
  'turns.p95_ms': timed('scope', 'turn_ms', 0.95, '95th percentile of the duration of a turn.'),
  'model.calls': counted('scope', 'model_calls'),
  'model.failures': counted('scope', 'model_failures'),
  'model.input_tokens': counted('scope', 'input_tokens'),
  'model.output_tokens': counted('scope', 'output_tokens'),
  'model.cost_usd': costing('model_cost_usd'),
  'model.unpriced_calls': counted('scope', 'unpriced_calls'),
  effects: counted('scope', 'effects'),
  'effects.failed': counted('scope', 'effects_failed'),
  'reflexes.fires': counted('scope', 'fires'),
  'reflexes.fire_share': shared(
    'scope',
    ['decided', 'decided', 'model_calls'],
    'Events decided by a reflex, of those and the model calls.',
  ),
  'reflexes.p95_ms': timedInUs('reflex_us', 0.95, '95th percentile of the duration of a run of a reflex.'),
  'reflexes.evictions': counted('scope', 'evictions'),
  'reflexes.lapses': counted('scope', 'lapses'),
  'reflexes.audits': counted('scope', 'audits'),
  'reflexes.audits_disagreed': counted('scope', 'audits_disagreed'),
  'reflexes.corrections': counted('scope', 'corrections'),
  'gate.p50_ms': timedInUs('gate_us', 0.5, 'Median time that the gate takes to decide on a proposal, the control plane included.'),
  'replays.compared': counted('scope', 'replayed'),
  'replays.changed': counted('scope', 'replayed_otherwise'),
  dry_turns: counted('scope', 'dry_turns'),
  'dry_turns.cost_usd': counted('scope', 'dry_turn_cost_usd', 'usd'),
  ...saved('scope', 'reflexes'),
  ...leftAlone('scope', 'reflexes'),
  ...proposed('scope', 'skills'),
  'skills.refusals': counted('scope', 'skill_refusals'),
  'skills.bulletins': counted('scope', 'bulletins'),
  'skills.bulletin_tokens': counted('scope', 'bulletin_tokens'),
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
  'tool.calls': counted('tool', 'calls'),
  'tool.failed': counted('tool', 'failed'),
  'models.calls': counted('model', 'calls'),
  'models.failed': counted('model', 'failed'),
  'models.input_tokens': counted('model', 'input_tokens'),
  'models.output_tokens': counted('model', 'output_tokens'),
  'models.cost_usd': { ...counted('model', 'cost_usd', 'usd'), is_cost: true },
  'models.unpriced_calls': counted('model', 'unpriced_calls'),
  'reflex.runs': counted('reflex', 'runs'),
  'reflex.fires': counted('reflex', 'fires'),
  'reflex.shadow_fires': counted('reflex', 'shadow_fires'),
  'reflex.errors': counted('reflex', 'errors'),
  'reflex.overruled': counted('reflex', 'overruled'),
  'reflex.fire_rate': shared('reflex', ['fires', 'runs'], 'Fires of all runs.'),
  'reflex.evictions': counted('reflex', 'evictions'),
  'reflex.audits': counted('reflex', 'audits'),
  'reflex.audits_disagreed': counted('reflex', 'audits_disagreed'),
  'reflex.corrections': counted('reflex', 'corrections'),
  ...saved('reflex', 'reflex'),
  ...leftAlone('reflex', 'reflex'),
  'skill.calls': counted('skill', 'calls'),
  'skill.success_rate': shared('skill', ['ok', 'ok', 'failed'], 'Successful runs of those that ended. Reused outputs are not runs.'),
  'skill.reused': counted('skill', 'reused'),
  'skill.approvals': counted('skill', 'approvals'),
  'skill.failure_streak': counted('skill', 'max_streak'),
  'skill.cost_usd': counted('skill', 'cost_usd', 'usd'),
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
