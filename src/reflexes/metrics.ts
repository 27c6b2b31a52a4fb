import type { Histogram, Percentiles, PresentedMetrics, ReflexMetrics } from '../contract/reports/reflex-report.ts'
import type { SandboxRun } from './sandbox.ts'

export type { Histogram, ReflexMetrics } from '../contract/reports/reflex-report.ts'

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

/** Updates the metrics. The result of a fire is counted once it is known. */
export function countRun(metrics: ReflexMetrics, { reason, fuel, duration_us }: Pick<SandboxRun, 'reason' | 'fuel' | 'duration_us'>): void {
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

function agreementOf({ shadow: { agreed, disagreed } }: Pick<ReflexMetrics, 'shadow'>): number | null {
  return agreed + disagreed === 0 ? null : agreed / (agreed + disagreed)
}

function addCounts<Name extends string>(sums: Record<NoInfer<Name>, number>, counts: Record<Name, number>): void {
  for (const name of Object.keys(counts) as Name[]) sums[name] += counts[name]
}

const BUCKETS_PER_DOUBLING = 8
/** The bucket of samples below 1, which are reported as 0. */
const BELOW_ONE = -1

export const emptyHistogram = (): Histogram => ({ buckets: {}, count: 0, max: 0 })

export const sampleBucket = (value: number): number => (value < 1 ? BELOW_ONE : Math.floor(Math.log2(value) * BUCKETS_PER_DOUBLING))

export function countSample(histogram: Histogram, value: number): void {
  const bucket = sampleBucket(value)
  histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1
  histogram.count += 1
  histogram.max = Math.max(histogram.max, value)
}

export function mergeHistograms(list: readonly Histogram[]): Histogram {
  const merged = emptyHistogram()
  for (const { buckets, count, max } of list) {
    for (const [bucket, samples] of Object.entries(buckets)) merged.buckets[bucket] = (merged.buckets[bucket] ?? 0) + samples
    merged.count += count
    merged.max = Math.max(merged.max, max)
  }
  return merged
}

/** Integers; all 0 without samples. */
export function percentiles(histogram: Histogram): Percentiles {
  const at = (share: number): number => Math.round(Math.min(percentile(histogram, share), histogram.max))
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: histogram.max }
}

/** The middle of the bucket that holds this share of the samples; 0 without samples. */
export function percentile({ buckets, count }: Pick<Histogram, 'buckets' | 'count'>, share: number): number {
  const sorted = Object.entries(buckets)
    .map(([bucket, samples]) => ({ bucket: Number(bucket), samples }))
    .sort((one, other) => one.bucket - other.bucket)
  let left = Math.ceil(count * share)
  const found = sorted.find(({ samples }) => (left -= samples) <= 0)
  return found ? middleOf(found.bucket) : 0
}

const middleOf = (bucket: number): number => (bucket === BELOW_ONE ? 0 : 2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING))
