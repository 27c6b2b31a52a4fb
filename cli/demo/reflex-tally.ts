import type { EntryKind, LogEntry } from '../../src/contract/log-entry.ts'
import type { Histogram } from '../../src/contract/reports/reflex-report.ts'
import { countSample, emptyHistogram, percentiles } from '../../src/reflexes/metrics.ts'

type Run = Extract<LogEntry, { kind: Extract<EntryKind, 'reflex-fired' | 'reflex-passed'> }>

/**
 * The results of one reflex. `passed`: it left the event to the slow path; `troubled`: it failed or
 * was held back.
 */
export type ReflexTally = { fired: number; passed: number; troubled: number; total_us: number; duration_us: Histogram; fuel: Histogram }

export const noReflexTally = (): ReflexTally => ({
  fired: 0,
  passed: 0,
  troubled: 0,
  total_us: 0,
  duration_us: emptyHistogram(),
  fuel: emptyHistogram(),
})

/** Returns the tally after one more run. */
export function countRun(tally: ReflexTally, entry: Run): ReflexTally {
  const fired = entry.kind === 'reflex-fired' ? 1 : 0
  const troubled = entry.kind === 'reflex-passed' && entry.reason !== 'null' ? 1 : 0
  return {
    fired: tally.fired + fired,
    passed: tally.passed + 1 - fired,
    troubled: tally.troubled + troubled,
    total_us: tally.total_us + entry.duration_us,
    duration_us: withSample(tally.duration_us, entry.duration_us),
    fuel: withSample(tally.fuel, entry.fuel),
  }
}

function withSample(histogram: Histogram, value: number): Histogram {
  const copy = { ...histogram, buckets: { ...histogram.buckets } }
  countSample(copy, value)
  return copy
}

export type ReflexFigures = {
  fired: number
  passed: number
  troubled: number
  /**
   * The server's clock has millisecond resolution: a run of microseconds is logged as 0 or 1,000,
   * so the mean says more than the median.
   */
  mean_us: number
  median_us: number
  median_fuel: number
}

export function reflexFigures({ fired, passed, troubled, total_us, duration_us, fuel }: ReflexTally): ReflexFigures {
  const mean_us = fired + passed === 0 ? 0 : Math.round(total_us / (fired + passed))
  return { fired, passed, troubled, mean_us, median_us: percentiles(duration_us).p50, median_fuel: percentiles(fuel).p50 }
}
