import { desc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { jsonChunks } from '../../base/byte-length.ts'
import type { ReflexMetrics } from '../../contract/reports/reflex-report.ts'
import { reflexMetrics } from './tables.ts'

/** Maximum number of rows read per reflex: those of the scopes that reported last. */
const MOST_ROWS = 5000

export type ToldMetrics = { reflex_id: string; version: number; metrics: ReflexMetrics }
export type ScopeMetrics = { version: number; scope: string; metrics: ReflexMetrics }

/** Writes a scope's counters in one batch. Stale ones change nothing. `now` in ms. */
export async function tellReflexMetrics(db: D1Database, scope: string, entries: readonly ToldMetrics[], now: number): Promise<void> {
  const chunks = jsonChunks(entries.map((entry) => JSON.stringify(entry)))
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(UPSERT).bind(chunk, scope, now)))
}

const UPSERT = `INSERT INTO reflex_metrics (reflex_id, version, scope, metrics, updated_at)
  SELECT value->>'reflex_id', value->>'version', ?2, value->'metrics', ?3 FROM json_each(?1) WHERE true
  ON CONFLICT (reflex_id, version, scope) DO UPDATE SET metrics = excluded.metrics, updated_at = excluded.updated_at
  WHERE excluded.updated_at >= reflex_metrics.updated_at`

export async function forgetReflexMetrics(db: D1Database, before: number, limit: number): Promise<number> {
  const sql = 'DELETE FROM reflex_metrics WHERE rowid IN (SELECT rowid FROM reflex_metrics WHERE updated_at < ?1 LIMIT ?2)'
  return (await db.prepare(sql).bind(before, limit).run()).meta.changes
}

/** One row for each version and scope, last reported first. */
export async function metricsOf(db: D1Database, id: string): Promise<ScopeMetrics[]> {
  const { version, scope, metrics, updated_at } = reflexMetrics
  return drizzle(db)
    .select({ version, scope, metrics })
    .from(reflexMetrics)
    .where(eq(reflexMetrics.reflex_id, id))
    .orderBy(desc(updated_at))
    .limit(MOST_ROWS)
}
