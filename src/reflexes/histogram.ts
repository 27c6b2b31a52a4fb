import type { Histogram } from '../contract/reflex-metrics.ts'

const BUCKETS_PER_DOUBLING = 8
/** For what is smaller than 1: it is told as 0. */
const BELOW_ONE = -1

export type Percentiles = { p50: number; p90: number; p99: number; max: number }

export const emptyHistogram = (): Histogram => ({ buckets: {}, count: 0, max: 0 })

/** Changes the histogram. */
export function countSample(histogram: Histogram, value: number): void {
  const bucket = value < 1 ? BELOW_ONE : Math.floor(Math.log2(value) * BUCKETS_PER_DOUBLING)
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

/** In whole numbers, all 0 where there is no sample. */
export function percentiles(histogram: Histogram): Percentiles {
  const sorted = Object.entries(histogram.buckets)
    .map(([bucket, samples]) => ({ bucket: Number(bucket), samples }))
    .sort((one, other) => one.bucket - other.bucket)
  const at = (share: number): number => {
    let left = Math.ceil(histogram.count * share)
    const found = sorted.find(({ samples }) => (left -= samples) <= 0)
    return found ? Math.round(Math.min(middleOf(found.bucket), histogram.max)) : 0
  }
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: histogram.max }
}

const middleOf = (bucket: number): number => (bucket === BELOW_ONE ? 0 : 2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING))
