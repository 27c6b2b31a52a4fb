import { iso } from '../../../base/time.ts'
import { z } from 'zod'
import { nearestFirst } from '../../../base/nearest.ts'
import { operations } from '../../../contract/operation.ts'
import { instant, toolScope, toolTime } from '../../../contract/operations/shared.ts'
import {
  buckets,
  families,
  bucketStart,
  bucketSteps,
  statistics,
  statisticsSummary,
  type Bucket,
  type MetricSums,
} from '../contract/statistics.ts'
import { scopePattern } from '../../../contract/principal.ts'
import { lastPasses } from '../../../store/artifacts/skill-tests.ts'
import { countVersions, MOST_SUMS, sumByScope, sumStatistics, type StatisticsQuery } from '../store/query.ts'
import { storeOf } from '../../../store/store.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { demandCoverage } from '../../../http/auth/middleware.ts'
import { invalid } from '../../../http/problems/refusals.ts'
import { metrics, TURN_KEYS, type Metric } from './statistics-metrics.ts'

const MOST_POINTS = 1500
const MOST_SERIES = 100
const MOST_METRICS = 30
const DAY_MS = bucketSteps.day
/** The default range, as far back from now. */
const RANGE_MS: Record<Bucket, number> = { minute: bucketSteps.hour, hour: DAY_MS, day: 30 * DAY_MS, all: 1 }

const names = Object.keys(metrics)

/** A parameter that is one of these names. The refusal of another one has the nearest first. */
const metricOf = (known: readonly string[]) =>
  z.enum(known as [string, ...string[]], {
    error: ({ input }) => {
      if (typeof input !== 'string') return undefined
      const [nearest, ...others] = nearestFirst(input.slice(0, 64), known)
      return `there is no ${input.slice(0, 64)} here: the nearest is ${nearest}; the others are ${others.join(', ')}`
    },
  })
const operation = operations({ tag: 'Statistics', roles: ['viewer'] })
const times = {
  bucket: z.enum(buckets).default('hour').describe('`all` is one bucket without a time range.'),
  since: instant.optional().describe('Default: an hour (minute), a day (hour) or 30 days (day) before `until`.'),
  until: instant.optional().describe('Exclusive; default: now.'),
  scope: scopePattern.optional().describe('A scope or a pattern.'),
}
export const read = operation('get /v1/stats', 'getStatistics', 'Get a metric over time', {
  description:
    'Numbers of the scopes that the key covers, in buckets of UTC. Minutes are kept for a day, hours for 31 days, days and totals for good. ' +
    `The newest buckets lag by up to a minute, 10 minutes (hour) or an hour (day). At most ${MOST_POINTS} buckets. docs/stats.md defines the metrics.`,
  query: z.object({
    metric: metricOf(names).describe('The name of a metric in docs/stats.md.'),
    by: z.enum(families).optional().describe('One series for each, largest totals first. Without it: the total.'),
    ...times,
  }),
  answers: { 200: [statistics, 'The metric.'] },
  mcp: {
    name: 'statistics',
    title: 'A metric over time',
    description: 'A number per minute, hour or day. An unknown metric is answered with the names of all, the nearest first.',
    input: {
      metric: z.string().max(64),
      by: z.enum(families).optional(),
      bucket: z.enum(buckets).optional(),
      scope: toolScope.optional().describe('A scope or a pattern.'),
      since: toolTime,
      until: toolTime,
    },
  },
})

const scopeMetrics = Object.keys(metrics).filter((name) => metrics[name]?.family === 'scope' && !metrics[name]?.registry)
const summary = operation('get /v1/stats/summary', 'getStatisticsSummary', 'Get several metrics over time', {
  description: `Totals of the scopes that the key covers, by one query. For \`reflex.…\`, \`skill.…\` and series use /v1/stats.`,
  query: z.object({
    metrics: z
      .string()
      .transform((list) => list.split(','))
      .pipe(z.array(metricOf(scopeMetrics)).min(1).max(MOST_METRICS))
      .meta({ description: `Names of metrics, separated by commas; at most ${MOST_METRICS}.`, example: 'turns,model.cost_usd' }),
    ...times,
  }),
  answers: { 200: [statisticsSummary, 'The metrics, in the order of the request.'] },
})

type StatisticsAnswer = z.infer<typeof statistics>

export const statisticsRoutes = resource().openapiRoutes([
  serve(summary, async (c, { query: { metrics: asked_names, bucket, scope, ...range } }) => {
    if (scope !== undefined) demandCoverage(c.var.principal, [{ scope }])
    const { since, until } = rangeOf(bucket, range)
    const asked = asked_names.flatMap((name) => (metrics[name] ? [{ name, metric: metrics[name] }] : []))
    const patterns = scope === undefined ? c.var.principal.scopes : [scope]
    const keys = [...new Set(asked.flatMap(({ metric }) => metric.keys))]
    const series = await summed(storeOf(c.env), { family: 'scope', keys, bucket, since, until, patterns, by: null })
    const points: Points = series.get('') ?? new Map()
    const shown = asked.map(({ name, metric: { unit, of } }) => ({
      metric: name,
      unit,
      total: of(totalOf(points), {}),
      points: Array.from(points, ([start, sums]) => ({ at: iso(start), value: of(sums, {}) })),
    }))
    return { bucket, since: iso(since), until: iso(until), metrics: shown }
  }),
  serve(read, async (c, { query: { metric: name, by, bucket, scope, ...asked } }) => {
    const metric = metrics[name]
    if (!metric) throw invalid(`There is no metric ${name}.`)
    if (by !== undefined && by !== 'scope' && by !== metric.family) {
      const known = [...new Set(['scope', metric.family])].join(' or ')
      throw invalid(`The metric ${name} has no series by ${by}: by is ${known} here.`)
    }
    if (scope !== undefined) demandCoverage(c.var.principal, [{ scope }])
    const { since, until } = rangeOf(bucket, asked)
    const grouped = by === undefined ? null : by === 'scope' ? ('scope' as const) : ('label' as const)
    const { scopes } = c.var.principal
    const range = { bucket, since, until, patterns: scope === undefined ? scopes : [scope], by: grouped }
    const db = storeOf(c.env)
    const shown = metric.registry
      ? { series: [{ label: null, total: await registered(db, metric.registry, scopes), points: [] }], more: false }
      : await seriesOf(db, metric, range)
    return { metric: name, unit: metric.unit, bucket, since: iso(since), until: iso(until), ...shown }
  }),
])

async function seriesOf(
  db: D1Database,
  metric: Metric,
  range: Omit<StatisticsQuery, 'family' | 'keys'>,
): Promise<Pick<StatisticsAnswer, 'series' | 'more'>> {
  const { family, keys } = metric
  const of_turns = { ...range, family: 'scope' as const, keys: TURN_KEYS, by: range.by === 'scope' ? range.by : null }
  const [series, turns, unpriced, passes] = await Promise.all([
    summed(db, { ...range, family, keys }),
    metric.against ? summed(db, of_turns) : new Map<string, Points>(),
    metric.is_cost ? summed(db, { ...range, family, keys: ['unpriced_calls'] }) : new Map<string, Points>(),
    metric.is_last_pass ? lastPasses(db, range.patterns) : new Map<string, number>(),
  ])
  if (range.by === null && !series.has('')) series.set('', new Map())
  // A scope without a known price has a row, too: else it would look as if it cost nothing.
  for (const label of unpriced.keys()) if (!series.has(label)) series.set(label, new Map())
  if (range.by === 'label') for (const id of passes.keys()) if (!series.has(id)) series.set(id, new Map())
  const passOf = (label: string) => (range.by === null ? Math.max(...passes.values()) : (passes.get(label) ?? null))
  const unpricedOf = (label: string) => {
    const points = unpriced.get(label)
    if (points) return totalOf(points)['unpriced_calls'] ?? 0
    return unpriced.size > MOST_SERIES ? null : 0
  }
  const totals = Array.from(series, ([label, points]) => {
    const all = turns.get(range.by === 'scope' ? label : '') ?? new Map<number, MetricSums>()
    return {
      label,
      points,
      all,
      total: passes.size > 0 ? passOf(label) : metric.of(totalOf(points), totalOf(all)),
      unpriced: metric.is_cost && unpricedOf(label),
    }
  }).sort(byTotal)
  const shown = totals.slice(0, MOST_SERIES).map(({ label, points, all, total, unpriced: unpriced_calls }) => ({
    label: range.by === null ? null : label,
    total,
    ...(unpriced_calls !== undefined && { unpriced_calls }),
    points: Array.from(points, ([start, sums]) => ({ at: iso(start), value: metric.of(sums, all.get(start) ?? {}) })),
  }))
  return { series: shown, more: totals.length > MOST_SERIES }
}

type Ranked = { label: string; total: number | null; unpriced: number | null | undefined }

const byTotal = (one: Ranked, other: Ranked): number =>
  (other.total ?? 0) - (one.total ?? 0) || (other.unpriced ?? 0) - (one.unpriced ?? 0) || (one.label < other.label ? -1 : 1)

async function registered(db: D1Database, { kind, of }: NonNullable<Metric['registry']>, scopes: readonly string[]): Promise<number> {
  const counts = (await countVersions(db, scopes)).filter((row) => row.kind === kind)
  return counts.reduce((sum, row) => sum + (of === 'active' ? (row.state === 'active' ? row.versions : 0) : row[of]), 0)
}

type Points = Map<number, Record<string, number>>

export function rangeOf(
  bucket: Bucket,
  asked: { since?: string | undefined; until?: string | undefined },
): { since: number; until: number } {
  if (bucket === 'all') return { since: 0, until: 1 }
  const until = asked.until === undefined ? Date.now() + 1 : Date.parse(asked.until)
  const since = bucketStart(bucket, asked.since === undefined ? until - RANGE_MS[bucket] : Date.parse(asked.since))
  if (since >= until) throw invalid('`since` must be before `until`.')
  if ((until - since) / bucketSteps[bucket] > MOST_POINTS)
    throw invalid(`The range has more than ${MOST_POINTS} buckets: ask for a shorter one, or for longer buckets.`)
  return { since, until }
}

const tooMany = () => invalid('The answer has too many numbers: ask for a shorter range, longer buckets or fewer scopes.')

async function summed(db: D1Database, query: StatisticsQuery): Promise<Map<string, Points>> {
  if (query.keys.length === 0) return new Map()
  // A metric that is one number is ordered by its sum.
  const most = query.keys.length === 1 ? { most_series: MOST_SERIES + 1 } : {}
  const sums = await (query.by === 'scope' ? sumByScope(db, { ...query, ...most }) : sumStatistics(db, query))
  if (sums === null || sums.length > MOST_SUMS) throw tooMany()
  const series = new Map<string, Points>()
  for (const { series: label, start, key, value } of sums) {
    const points: Points = series.get(label) ?? new Map()
    series.set(label, points)
    const numbers = points.get(start) ?? {}
    points.set(start, numbers)
    numbers[key] = value
  }
  return series
}

function totalOf(points: Points): MetricSums {
  const total: Record<string, number> = {}
  for (const sums of points.values()) {
    for (const [key, value] of Object.entries(sums)) {
      total[key] = key.startsWith('max_') ? Math.max(total[key] ?? 0, value) : (total[key] ?? 0) + value
    }
  }
  return total
}
