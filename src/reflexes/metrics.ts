import type { ReflexMetrics } from '../contract/reflex-metrics.ts'
import { countSample, emptyHistogram, mergeHistograms, percentiles, type Percentiles } from './histogram.ts'
import type { Run } from './sandbox.ts'

export type { Histogram, ReflexMetrics } from '../contract/reflex-metrics.ts'

/** As clients see them. `agreement` is the share of the compared shadow fires that agreed, null where none could be compared. */
export type PresentedMetrics = Omit<ReflexMetrics, 'fuel' | 'duration_us'> & {
  agreement: number | null
  fuel: Percentiles
  duration_us: Percentiles
}

export const emptyMetrics = (): ReflexMetrics => ({
  runs: 0,
  fired: 0,
  passed: { null: 0, error: 0, limit: 0, invalid_action: 0 },
  held_back: 0,
  acted: 0,
  failed: 0,
  shadow: { runs: 0, fired: 0, agreed: 0, disagreed: 0, undecided: 0 },
  overruled: 0,
  model_calls_saved: 0,
  tokens_saved: 0,
  cost_saved_usd: 0,
  fuel: emptyHistogram(),
  duration_us: emptyHistogram(),
})

/** Changes the metrics. What became of a fire is counted where it becomes known. */
export function countRun(metrics: ReflexMetrics, { reason, fuel, duration_us }: Pick<Run, 'reason' | 'fuel' | 'duration_us'>): void {
  metrics.runs += 1
  if (reason === 'fired') metrics.fired += 1
  else metrics.passed[reason] += 1
  countSample(metrics.fuel, fuel)
  countSample(metrics.duration_us, duration_us)
}

export function mergeMetrics(list: readonly ReflexMetrics[]): ReflexMetrics {
  const merged = emptyMetrics()
  for (const { passed, shadow, fuel: _fuel, duration_us: _duration, ...counts } of list) {
    addCounts(merged, counts)
    addCounts(merged.passed, passed)
    addCounts(merged.shadow, shadow)
  }
  merged.fuel = mergeHistograms(list.map(({ fuel }) => fuel))
  merged.duration_us = mergeHistograms(list.map(({ duration_us }) => duration_us))
  return merged
}

export function presentMetrics({ fuel, duration_us, ...counts }: ReflexMetrics): PresentedMetrics {
  return { ...counts, agreement: agreementOf(counts), fuel: percentiles(fuel), duration_us: percentiles(duration_us) }
}

export function agreementOf({ shadow: { agreed, disagreed } }: Pick<ReflexMetrics, 'shadow'>): number | null {
  return agreed + disagreed === 0 ? null : agreed / (agreed + disagreed)
}

function addCounts<Name extends string>(sums: Record<NoInfer<Name>, number>, counts: Record<Name, number>): void {
  for (const name of Object.keys(counts) as Name[]) sums[name] += counts[name]
}
