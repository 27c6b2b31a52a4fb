import type { Summary } from './levels.ts'

/** A metric over time, by its name. */
export type Metrics = Readonly<Record<string, Summary['metrics'][number]>>

const HOUR_MS = 3_600_000
const STEPS: Record<string, number> = { minute: HOUR_MS / 60, hour: HOUR_MS, day: 24 * HOUR_MS }

/** The steps of the time range, oldest first, and what metrics sum up to in each. */
export function bucketsOf({ bucket, since, until }: Summary, metrics: Metrics) {
  const step = STEPS[bucket] ?? HOUR_MS
  const first = Date.parse(since)
  const count = Math.max(1, Math.ceil((Date.parse(until) - first) / step))
  const valuesOf = (...names: readonly string[]): number[] => {
    const values = Array.from({ length: count }, () => 0)
    for (const { at, value } of names.flatMap((name) => metrics[name]?.points ?? [])) {
      const place = Math.round((Date.parse(at) - first) / step)
      if (place >= 0 && place < count) values[place] = (values[place] ?? 0) + (value ?? 0)
    }
    return values
  }
  return { step, first, count, valuesOf }
}
