import { isJsonFields } from '../../base/json.ts'
import type { ReflexMetrics } from '../../contract/reports/reflex-report.ts'
import { foldScopes, isNewestIn, isShownIn, type Newest, type PartsTable } from '../packs/scope-parts.ts'
import { sortNow } from '../packs/told.ts'
import { forgetReports, tellReports } from './scope-reports.ts'

/** Maximum number of rows read per reflex, from the scopes that reported last. */
const MOST_ROWS = 5000
const YEAR_MS = 365 * 86_400_000

type ToldMetrics = { reflex_id: string; version: number; metrics: ReflexMetrics }
type ReflexScopeMetrics = { version: number; scope: string; metrics: ReflexMetrics }

/** `seq`: the last entry of the scope's log that the counters include. `now` in ms. */
type Teller = { scope: string; seq: number; now: number }

/** The name of what scopes answer of their reflexes, beside outcomes that are packed. */
export const METRICS = 'reflex-metrics'
export type AnsweredMetrics = { scope: string; seq: number; reports: ToldMetrics[] }

/** The counters of scopes that answered them, by version. */
const PACKS: PartsTable = { packs: 'reflex_metrics_packs', own: 'reflex_metrics', key: ['reflex_id', 'version'], stamp: 'updated_at' }
const IS_NEWEST = isNewestIn(PACKS, { scope: '?2', seq: '?4', hash: '?5' })

/** Writes a scope's counters in one batch. Stale ones change nothing. */
export const tellReflexMetrics = (db: D1Database, { scope, seq, now }: Teller, reports: readonly ToldMetrics[]): Promise<void> =>
  tellReports(db, { table: 'reflex_metrics', column: 'metrics', is_newest: IS_NEWEST }, { scope, seq, reports, now })

type Packed = { metrics: ReflexMetrics; at: number }
type OfVersion = { key: [id: string, version: number]; scopes: Map<string, Newest<Packed>> }

/** Writes the answers of scopes into the rows of the versions: few rows, however many scopes. */
export async function sortReflexMetrics(db: D1Database, answers: readonly unknown[], now: number): Promise<void> {
  const versions = new Map<string, OfVersion>()
  for (const { scope, seq, reports } of answers.filter(isAnswer)) {
    for (const { reflex_id, version, metrics } of reports) {
      const name = `${reflex_id}@${version}`
      const of = versions.get(name) ?? { key: [reflex_id, version], scopes: new Map<string, Newest<Packed>>() }
      versions.set(name, of)
      if ((of.scopes.get(scope)?.seq ?? -1) <= seq) of.scopes.set(scope, { seq, value: { metrics, at: now } })
    }
  }
  const drops = ({ at }: Packed) => at < now - YEAR_MS
  for (const changed of versions.values()) await foldScopes(db, PACKS, changed, { drops, now })
}

/** Sorts what waits, for a reader. */
export const sortMetricsNow = (db: D1Database): Promise<void> => sortNow(db, METRICS, sortReflexMetrics)

const isReport = (report: unknown): boolean =>
  isJsonFields(report) &&
  typeof report['reflex_id'] === 'string' &&
  Number.isSafeInteger(report['version']) &&
  isJsonFields(report['metrics'])

const isAnswer = (answer: unknown): answer is AnsweredMetrics =>
  isJsonFields(answer) &&
  typeof answer['scope'] === 'string' &&
  Number.isSafeInteger(answer['seq']) &&
  Array.isArray(answer['reports']) &&
  answer['reports'].every(isReport)

export async function forgetReflexMetrics(db: D1Database, before: number, limit: number): Promise<number> {
  const rows = await forgetReports(db, 'reflex_metrics', before, limit)
  return rows > 0 ? rows : (await db.prepare(FORGET_PACKS).bind(before, limit).run()).meta.changes
}

const FORGET_PACKS = `DELETE FROM reflex_metrics_packs WHERE (reflex_id, version, part) IN
  (SELECT reflex_id, version, part FROM reflex_metrics_packs WHERE updated_at < ?1 LIMIT ?2)`

/** SQL for the counters of each scope, by the columns of `reflex_metrics`. `of`: the versions. */
export const allMetricsSql = (of: (row: string) => string): string => `SELECT m.reflex_id, m.version, m.scope, m.metrics, m.updated_at
    FROM reflex_metrics AS m WHERE ${of('m')}
  UNION ALL SELECT p.reflex_id, p.version, e.key, e.value->'metrics', e.value->>'at'
    FROM reflex_metrics_packs AS p CROSS JOIN json_each(p.scopes) AS e WHERE ${of('p')} AND ${isShownIn(PACKS, 'p', 'e.key')}`

/** A row for each version and scope, last reported first. */
export async function metricsOf(db: D1Database, id: string): Promise<ReflexScopeMetrics[]> {
  const sql = `SELECT version, scope, metrics FROM (${allMetricsSql((row) => `${row}.reflex_id = ?1`)}) ORDER BY updated_at DESC LIMIT ${MOST_ROWS}`
  const { results } = await db.prepare(sql).bind(id).all<Omit<ReflexScopeMetrics, 'metrics'> & { metrics: string }>()
  return results.map(({ metrics, ...row }) => ({ ...row, metrics: JSON.parse(metrics) as ReflexMetrics }))
}
