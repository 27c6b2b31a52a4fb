import { nearestFirst } from '../../src/base/nearest.ts'
import { iso } from '../../src/base/time.ts'
import { Option, type Command } from 'commander'
import type { z } from 'zod'
import {
  buckets,
  families,
  type Bucket,
  type MetricSums,
  type statistics,
  bucketStart,
} from '../../src/features/statistics/contract/statistics.ts'
import { metrics, type Metric } from '../../src/features/statistics/http/statistics-metrics.ts'
import { UsageError } from '../lib/cli-error.ts'
import { dollars, duration, money } from '../lib/text.ts'
import { requestOf } from './ask.ts'
import { handler, type Session } from './session.ts'
import { table, written } from './table.ts'
import { timeOption } from './values.ts'
import type { NewEntry } from '../../src/contract/log-entry.ts'
import { foldEntry } from '../../src/traces/entries/table.ts'
import { emptyFold, type Add } from '../../src/traces/entries/kind.ts'
import { openStandalone } from './standalone-file.ts'
import { rowsOf } from '../../src/standalone/entries.ts'

type FileQuery = { by?: string; bucket: Bucket; since?: string; until?: string }

/** The numbers that entries of skills give. A standalone process logs no turns and no events. */
const COUNTED = new Set(
  'proposals clarifies policy_denials skill_refusals approvals calls ok failed reused max_streak cost_usd run_ms'.split(' '),
)
const isCounted = ({ family, unit, keys, registry }: Metric): boolean =>
  family !== 'reflex' && unit !== 'time' && !registry && keys.length > 0 && keys.every((key) => COUNTED.has(key))

type Series = Map<number, Record<string, number>>

/** A metric from the log of a standalone process, counted as a scope counts its own. */
export async function fileStatistics(file: string, name: string, query: FileQuery): Promise<ShownStatistics> {
  const { by, bucket } = query
  const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined
  if (!metric || !isCounted(metric)) throw notCounted(name)
  if (by !== undefined && by !== metric.family)
    throw new UsageError(`The metric ${name} of a file has no series by ${by}: by is ${metric.family} here.`)
  const entries = Array.from(rowsOf(await openStandalone(file)))
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
    foldEntry({ ...head, ...entry } as unknown as NewEntry, { record: fold, add, thinks: false })
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

function answer(metric: Metric, label: string | null, points: Series): ShownStatistics['series'][number] {
  const all: Series = new Map()
  for (const sums of points.values()) sum(all, 0, sums)
  const of = (sums: MetricSums) => metric.of(sums, {})
  return { label, total: of(all.get(0) ?? {}), points: Array.from(points, ([start, sums]) => ({ at: iso(start), value: of(sums) })) }
}

type ShownStatistics = z.infer<typeof statistics>
type Query = { by?: string; bucket: Bucket; file?: string; scope?: string; since?: string; until?: string }

const HELP = `
Metrics:
${Object.entries(metrics)
  .map(([name, { description }]) => `  ${name.padEnd(26)}${description}`)
  .join('\n')}

Example:
  reflex stats turns --bucket day --since 7d --by scope`

export function addStats(program: Command): void {
  program
    .command('stats <metric>')
    .description('Show a metric over time')
    .addOption(new Option('--by <group>', 'a row for each').choices(families))
    .addOption(new Option('--bucket <bucket>', 'the length of a bucket').choices(buckets).default('hour'))
    .option('--scope <pattern>', 'of one scope, or of those that match a pattern')
    .addOption(timeOption('since', 'at or after a time'))
    .addOption(timeOption('until', 'before a time'))
    .option('--file <path>', 'of the skills in the file of a standalone process')
    .addHelpText('after', HELP)
    .action(handler(stats))
}

async function stats({ api, print, signal }: Session, metric: string, { file, ...query }: Query): Promise<void> {
  if (!Object.hasOwn(metrics, metric))
    throw new UsageError(
      `There is no metric ${metric}: the nearest is ${nearestFirst(metric, Object.keys(metrics))[0]}.`,
      'reflex stats --help lists the metrics.',
    )
  if (file !== undefined && query.scope !== undefined) throw new UsageError('A file has no scopes: leave out --scope.')
  const answer =
    file !== undefined
      ? await fileStatistics(file, metric, query)
      : await api().json<ShownStatistics>(requestOf({ at: 'get /v1/stats' }, { fields: { metric, ...query } }).address, { signal })
  const columns = [
    { title: 'OF', of: ({ label }: ShownStatistics['series'][number]) => label ?? 'total' },
    { title: metric.toUpperCase(), of: (series: ShownStatistics['series'][number]) => costOrAmount(series, answer.unit) },
    { title: 'TREND', of: ({ points }: ShownStatistics['series'][number]) => trend(points.map(({ value }) => value)) },
  ]
  print.result(answer, (paint) => [
    paint(
      'dim',
      answer.bucket === 'all' ? 'since the beginning' : `${written(answer.since)} to ${written(answer.until)}, by ${answer.bucket}`,
    ),
    ...table(answer.series, columns, { paint }),
    ...(answer.series.length === 0 ? [paint('dim', `Nothing was counted ${answer.bucket === 'all' ? 'yet' : 'in this time'}.`)] : []),
    ...(answer.more ? [paint('dim', 'There are more rows.')] : []),
  ])
}

/** The cost of models says how many calls it leaves out, since their price is unknown. */
function costOrAmount(
  { total, unpriced_calls: unpriced }: ShownStatistics['series'][number],
  unit: ShownStatistics['unit'],
): string | null {
  if (unpriced === null) return `${dollars(total ?? 0)}, without calls of unknown price`
  return unpriced === undefined ? amount(total, unit) : money(total ?? 0, unpriced)
}

export function amount(value: number | null, unit: ShownStatistics['unit']): string | null {
  if (value === null) return null
  if (unit === 'share') return `${(value * 100).toFixed(1)} %`
  if (unit === 'usd') return dollars(value)
  if (unit === 'ms') return duration(value)
  if (unit === 'time') return new Date(value).toISOString()
  return value.toLocaleString('en-US')
}

const BARS = '▁▂▃▄▅▆▇█'
const MOST_BARS = 60

/** A bar for each of the newest buckets with data, between zero and the largest. */
export function trend(values: readonly (number | null)[]): string {
  const shown = values.slice(-MOST_BARS)
  const largest = Math.max(...shown.map((value) => value ?? 0), 0)
  const bar = (value: number) => BARS[Math.max(0, Math.round((value / (largest || 1)) * (BARS.length - 1)))] ?? ' '
  return shown.map((value) => (value === null ? ' ' : bar(value))).join('')
}
