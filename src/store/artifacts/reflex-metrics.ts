import { desc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { isJsonFields } from '../../base/json.ts'
import type { ReflexMetrics } from '../../contract/reports/reflex-report.ts'
import { forgetReports, tellReports } from './scope-reports.ts'
import { reflexMetrics } from './tables.ts'

/** Maximum number of rows read per reflex, from the scopes that reported last. */
const MOST_ROWS = 5000

export type ToldMetrics = { reflex_id: string; version: number; metrics: ReflexMetrics }
export type ReflexScopeMetrics = { version: number; scope: string; metrics: ReflexMetrics }

/** Writes a scope's counters in one batch. Stale ones change nothing. `now` in ms. */
export const tellReflexMetrics = (db: D1Database, scope: string, reports: readonly ToldMetrics[], now: number): Promise<void> =>
  tellReports(db, { table: 'reflex_metrics', column: 'metrics' }, { scope, reports, now })

/** The name of what scopes answer of their reflexes, beside outcomes that are packed. */
export const METRICS = 'reflex-metrics'
export type AnsweredMetrics = { scope: string; reports: ToldMetrics[] }

/** Writes what scopes have answered. */
export async function takeReflexMetrics(db: D1Database, answers: readonly unknown[], now: number): Promise<void> {
  const read = answers.filter((answer) => isJsonFields(answer) && typeof answer['scope'] === 'string' && Array.isArray(answer['reports']))
  await Promise.all((read as AnsweredMetrics[]).map(({ scope, reports }) => tellReflexMetrics(db, scope, reports, now)))
}

export const forgetReflexMetrics = (db: D1Database, before: number, limit: number): Promise<number> =>
  forgetReports(db, 'reflex_metrics', before, limit)

/** A row for each version and scope, last reported first. */
export async function metricsOf(db: D1Database, id: string): Promise<ReflexScopeMetrics[]> {
  const { version, scope, metrics, updated_at } = reflexMetrics
  return drizzle(db)
    .select({ version, scope, metrics })
    .from(reflexMetrics)
    .where(eq(reflexMetrics.reflex_id, id))
    .orderBy(desc(updated_at))
    .limit(MOST_ROWS)
}
