import type { NewEntry } from '../../src/contract/log-entry.ts'
import { bucketStart, type Bucket } from '../../src/contract/reports/statistics.ts'
import { metrics, type Metric, type Sums } from '../../src/http/operations/statistics-metrics.ts'
import { emptyFold, foldEntry, type Add } from '../../src/scope/statistics/fold.ts'
import { UsageError } from '../lib/cli-error.ts'
import { openStandalone } from './standalone-file.ts'
import type { Statistics } from './stats.ts'
import { entriesOf } from './trace/standalone.ts'

export type FileQuery = { by?: string; bucket: Bucket; since?: string; until?: string }

/** The numbers that entries of skills give. A standalone process logs no turns and no events. */
const COUNTED = new Set(
  'proposals clarifies policy_denials skill_refusals approvals calls ok failed reused max_streak cost_usd run_ms'.split(' '),
)
const isCounted = ({ family, unit, keys, registry }: Metric): boolean =>
  family !== 'reflex' && unit !== 'time' && !registry && keys.length > 0 && keys.every((key) => COUNTED.has(key))

type Series = Map<number, Record<string, number>>

/** A metric from the log of a standalone process, counted as a scope counts its own. */
export async function fileStatistics(file: string, name: string, query: FileQuery): Promise<Statistics> {
  const { by, bucket } = query
  const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined
  if (!metric || !isCounted(metric)) throw notCounted(name)
  if (by !== undefined && by !== metric.family) throw new UsageError(`The metric ${name} of a file has no series by ${by}.`)
  const entries = Array.from(entriesOf(await openStandalone(file)))
  const until = query.until === undefined ? Date.now() : Date.parse(query.until)
  const since = Date.parse(query.since ?? entries[0]?.at ?? iso(until))
  const found = new Map<string, Series>(by === undefined ? [['', new Map()]] : [])
  const fold = emptyFold()
  let at = 0
  const add: Add = (family, label, counts) => {
    if (family !== metric.family || at < since || at >= until) return
    sum(series(found, by === undefined ? '' : label), bucketStart(bucket, at), counts)
  }
  for (const entry of entries) {
    at = Date.parse(entry.at)
    const head = { span_id: '', parent_id: null, event_ids: [], duration_ms: null }
    foldEntry({ ...head, ...entry } as unknown as NewEntry, { record: fold, add, has_trigger: false })
  }
  const answered = Array.from(found, ([label, points]) => answer(metric, by === undefined ? null : label, points))
  return {
    metric: name,
    unit: metric.unit,
    bucket,
    since: iso(since),
    until: iso(until),
    series: answered.toSorted((one, other) => (other.total ?? 0) - (one.total ?? 0)),
    more: false,
  }
}

function notCounted(name: string): UsageError {
  const known = Object.keys(metrics).filter((key) => isCounted(metrics[key] as Metric))
  return new UsageError(
    `The file of a standalone process does not have the metric ${name}: it logs skills only.`,
    `It has ${known.join(', ')}.`,
  )
}

function series(found: Map<string, Series>, label: string): Series {
  const known = found.get(label) ?? new Map<number, Record<string, number>>()
  found.set(label, known)
  return known
}

function sum(points: Series, start: number, counts: Readonly<Record<string, number>>): void {
  const sums = points.get(start) ?? {}
  points.set(start, sums)
  for (const [key, value] of Object.entries(counts))
    sums[key] = key.startsWith('max_') ? Math.max(sums[key] ?? 0, value) : (sums[key] ?? 0) + value
}

function answer(metric: Metric, label: string | null, points: Series): Statistics['series'][number] {
  const all: Series = new Map()
  for (const sums of points.values()) sum(all, 0, sums)
  const of = (sums: Sums) => metric.of(sums, {})
  return { label, total: of(all.get(0) ?? {}), points: Array.from(points, ([start, sums]) => ({ at: iso(start), value: of(sums) })) }
}

const iso = (at: number): string => new Date(at).toISOString()
