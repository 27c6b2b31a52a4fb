import type { Context } from 'hono'
import { operations, texts } from '../../../contract/operation.ts'
import { histogramOf, type Family, type MetricSums } from '../contract/statistics.ts'
import type { Measure } from '../../../events/deployment.ts'
import { countVersions, sumStatistics } from '../store/query.ts'
import { exposedOf } from '../../../traces/entries/counts.ts'
import { storeOf } from '../../../store/store.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { deadLetterCounts, inboxDepths, parkedCounts, spanCounts } from '../../../http/operations/health-report.ts'
import { sizeSeenBy } from '../../../contract/principal.ts'
import { databaseBytes } from '../../../http/operations/schema-check.ts'

/** Bounds the series of a scrape: the reflexes and skills with the highest counts. */
const MOST_LABELS = 100
/** Upper bounds of the histogram are powers of two in ms, up to 35 minutes. */
const DOUBLINGS = 21
const BUCKETS_PER_DOUBLING = 8

const scrape = operations({ tag: 'Statistics', roles: ['viewer'] })(
  'get /metrics',
  'getPrometheusMetrics',
  'Get the current totals for Prometheus',
  {
    description:
      'Text format 0.0.4. Totals over the scopes that the key covers, since each scope exists, as last replicated to D1 (within about a minute). ' +
      `No series is per scope; of reflexes and skills the ${MOST_LABELS} with the highest counts are listed, and the first ${MOST_LABELS} hooks by address.`,
    answers: { 200: [null, 'The metrics.', texts.plain] },
  },
)

export const prometheusRoutes = resource().openapiRoutes([serve(scrape, exposed)])

async function exposed(c: Context<AuthEnv>): Promise<Response> {
  const { scopes } = c.var.principal
  const db = storeOf(c.env)
  const [scope, reflex, skill, inboxes, parked, letters, spans, versions, database, of_features] = await Promise.all([
    totalsOf(db, 'scope', SCOPE_KEYS, scopes),
    totalsOf(db, 'reflex', keysOf('reflex'), scopes),
    totalsOf(db, 'skill', keysOf('skill'), scopes),
    inboxDepths(db, scopes),
    parkedCounts(db, scopes),
    deadLetterCounts(db, scopes),
    spanCounts(db, scopes),
    countVersions(db, scopes),
    databaseBytes(db),
    Promise.all(c.var.features.map(async ({ measures }) => measures?.(c.env, scopes) ?? [])),
  ])
  const gauges = [
    gauge('scopes', 'Scopes.', inboxes.scopes),
    gauge('events_open', 'Events without an outcome.', inboxes.open),
    gauge('work_parked', 'Work that repeatedly crashed its scope.', parked.work),
    gauge('dead_letters', 'Dead letters that were neither retried nor discarded.', letters.total),
    {
      name: 'reflex_versions',
      kind: 'gauge' as const,
      help: 'Versions of reflexes and skills by state.',
      samples: versions.map(({ kind, state, versions: value }) => ({ labels: { kind, state }, value })),
    },
  ]
  const all = [
    ...ofScopes(scope.get('') ?? {}),
    counter('spans_exported_total', 'Spans that the collector took.', spans.exported),
    counter('spans_dropped_total', 'Spans that the collector rejected, or that waited for it for too long.', spans.dropped),
    ...labelled('reflex', reflex),
    ...labelled('skill', skill),
    ...gauges,
    {
      ...gauge('database_bytes', 'What D1 holds, of at most 10 GB.', 0),
      samples: database === null ? [] : [{ value: sizeSeenBy(scopes, database) }],
    },
    ...of_features.flat(),
  ]
  return c.text(all.map(textOf).join(''), 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' })
}

const STATUSES = ['accepted', 'completed', 'ignored', 'dead_lettered', 'cancelled', 'retried']
const EXPOSED = { scope: exposedOf('scope'), reflex: exposedOf('reflex'), skill: exposedOf('skill') }
const SCOPE_KEYS = [...STATUSES, ...keysOf('scope'), 'turn_ms', 'turn_time_ms']

function keysOf(family: keyof typeof EXPOSED): string[] {
  return EXPOSED[family].map(({ key }) => key)
}

async function totalsOf(
  db: D1Database,
  family: Family,
  keys: readonly string[],
  patterns: readonly string[],
): Promise<Map<string, MetricSums>> {
  const by = family === 'scope' ? null : 'label'
  const sums = await sumStatistics(db, { family, bucket: 'all', since: 0, until: 1, patterns, keys, by })
  const grouped = Map.groupBy(sums, ({ series }) => series)
  return new Map(Array.from(grouped, ([label, of]) => [label, Object.fromEntries(of.map(({ key, value }) => [key, value]))]))
}

function ofScopes(sums: MetricSums): Measure[] {
  const counters = EXPOSED.scope.map(({ name, key, help }): Measure => ({
    name: `reflex_${name}_total`,
    kind: 'counter',
    help,
    samples: [{ value: sums[key] ?? 0 }],
  }))
  const events = STATUSES.map((status) => ({ labels: { status }, value: sums[status] ?? 0 }))
  return [{ name: 'reflex_events_total', kind: 'counter', help: 'Events by status.', samples: events }, ...counters, durations(sums)]
}

function durations(sums: MetricSums): Measure {
  const { buckets, count } = histogramOf(sums, 'turn_ms')
  const below = (bucket: number) => Object.entries(buckets).reduce((sum, [name, samples]) => sum + (Number(name) < bucket ? samples : 0), 0)
  const bounded = Array.from({ length: DOUBLINGS + 1 }, (_, power) => ({
    suffix: '_bucket',
    labels: { le: String(2 ** power / 1000) },
    value: below(power * BUCKETS_PER_DOUBLING),
  }))
  const samples = [
    ...bounded,
    { suffix: '_bucket', labels: { le: '+Inf' }, value: count },
    { suffix: '_sum', value: (sums['turn_time_ms'] ?? 0) / 1000 },
    { suffix: '_count', value: count },
  ]
  return { name: 'reflex_turn_duration_seconds', kind: 'histogram', help: 'Durations of turns.', samples }
}

function labelled(of: 'reflex' | 'skill', totals: ReadonlyMap<string, MetricSums>): Measure[] {
  const sizeOf = (sums: MetricSums): number => Object.values(sums).reduce((sum, value) => sum + value, 0)
  const largest = [...totals].toSorted(([, one], [, other]) => sizeOf(other) - sizeOf(one)).slice(0, MOST_LABELS)
  return EXPOSED[of].map(({ name, key }) => ({
    name: `reflex_${of}_${name}_total`,
    kind: 'counter',
    help: `${of === 'reflex' ? 'Reflexes' : 'Skills'}: ${name}.`,
    samples: largest.map(([label, sums]) => ({ labels: { [of]: label }, value: sums[key] ?? 0 })),
  }))
}

const gauge = (name: string, help: string, value: number): Measure => ({
  name: `reflex_${name}`,
  kind: 'gauge',
  help,
  samples: [{ value }],
})

const counter = (name: string, help: string, value: number): Measure => ({ ...gauge(name, help, value), kind: 'counter' })

function textOf({ name, kind, help, samples }: Measure): string {
  const lines = samples.map(({ suffix = '', labels = {}, value }) => {
    const shown = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
    return `${name}${suffix}${shown.length > 0 ? `{${shown.join(',')}}` : ''} ${value}\n`
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join('')}`
}

const escaped = (text: string): string =>
  text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`)
