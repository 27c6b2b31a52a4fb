import { textHash } from '../../base/hash.ts'
import { jsonChunks } from '../../base/json.ts'

/**
 * A table with a row for each version and scope, and the column that scopes report. `is_newest`:
 * SQL that is true unless another table has a newer report; `?2`, `?4` and `?5` are the scope, the
 * entry and the scope's hash.
 */
type Reports = { table: 'certificates' | 'reflex_metrics'; column: 'certificate' | 'metrics'; is_newest?: string }
type Report = { reflex_id: string; version: number }
/** `seq`: the last entry of the scope's log, for a table that has it. */
type Reported = { scope: string; seq?: number; reports: readonly Report[]; now: number }

/** Writes the reports of a scope in one batch. Stale and equal ones change nothing. `now` in ms. */
export async function tellReports(db: D1Database, of: Reports, { scope, seq, reports, now }: Reported): Promise<void> {
  const { table, column, is_newest = 'true' } = of
  const isNumbered = seq !== undefined
  const upsert = `INSERT INTO ${table} (reflex_id, version, scope, ${column}, updated_at${isNumbered ? ', seq' : ''})
    SELECT value->>'reflex_id', value->>'version', ?2, value->'${column}', ?3${isNumbered ? ', ?4' : ''} FROM json_each(?1) WHERE ${is_newest}
    ON CONFLICT (reflex_id, version, scope) DO UPDATE SET ${column} = excluded.${column}, updated_at = excluded.updated_at${isNumbered ? ', seq = excluded.seq' : ''}
    WHERE excluded.updated_at >= ${table}.updated_at AND excluded.${column} IS NOT ${table}.${column}`
  const chunks = jsonChunks(reports.map((report) => JSON.stringify(report)))
  if (chunks.length > 0)
    await db.batch(chunks.map((chunk) => db.prepare(upsert).bind(chunk, scope, now, ...(isNumbered ? [seq, textHash(scope)] : []))))
}

export async function forgetReports(db: D1Database, table: Reports['table'], before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE updated_at < ?1 LIMIT ?2)`
  return (await db.prepare(sql).bind(before, limit).run()).meta.changes
}
