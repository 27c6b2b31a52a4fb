import { and, eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Telemetry } from '../contract/telemetry.ts'
import { isPattern, patternsSeenBy, readable, sightOf } from '../../../store/artifacts/patterns.ts'
import { telemetry } from './tables.ts'
import { artifactPatterns, artifacts, artifactVersions } from '../../../store/artifacts/tables.ts'

/** Stores a window, if it is the first of that client and key with this start. True if it was. */
export async function storeTelemetry(db: D1Database, key_id: string, { client, window, skills }: Telemetry): Promise<boolean> {
  const insert = `INSERT INTO telemetry (key_id, client, window_start, skill_id, window_end, calls, success, delta_cost, delta_p95)
    SELECT ?1, ?2, ?3, value->>'skill_id', ?4, value->>'calls', value->>'success', value->>'delta_cost', value->>'delta_p95'
    FROM json_each(?5) WHERE NOT EXISTS (SELECT 1 FROM telemetry WHERE key_id = ?1 AND client = ?2 AND window_start = ?3)`
  const { meta } = await db
    .prepare(insert)
    .bind(key_id, client, Date.parse(window.since), Date.parse(window.until), JSON.stringify(skills))
    .run()
  return meta.changes > 0
}

/** The skills among these that a key with these scopes does not reach; none with `*`. */
export async function skillsBeyond(db: D1Database, key_scopes: readonly string[], ids: readonly string[]): Promise<string[]> {
  const sight = await sightOf(db, key_scopes)
  if (sight === null) return []
  const { id, kind } = artifactVersions
  const reached = await drizzle(db)
    .selectDistinct({ id })
    .from(artifactVersions)
    .innerJoin(artifacts, and(eq(artifacts.kind, kind), eq(artifacts.id, id)))
    .where(and(eq(kind, 'skill'), sql`${id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`, readable(sight)))
  const known = new Set(reached.map((row) => row.id))
  return ids.filter((one) => !known.has(one))
}

type TelemetrySum = {
  skill_id: string
  clients: number
  calls: number
  success: number
  delta_cost: number | null
  delta_p95: number | null
}
type TelemetryQuery = {
  skill_id?: string | undefined
  since: number
  limit: number
  cursor?: string | undefined
  key_scopes: readonly string[]
}

/** Sums by skill, of the skills whose owners' scopes overlap with the key's; of all with `*`. */
export async function sumTelemetry(
  db: D1Database,
  { skill_id, since, limit, cursor, key_scopes }: TelemetryQuery,
): Promise<{ items: TelemetrySum[]; more: boolean }> {
  const patterns = await patternsSeenBy(db, key_scopes)
  const mean = (column: string) =>
    sql.raw(`sum(${column} * calls) / nullif(sum(CASE WHEN ${column} IS NOT NULL THEN calls END), 0) AS ${column}`)
  const visible =
    patterns === null
      ? sql`true`
      : sql`skill_id IN (SELECT ${artifactPatterns.id} FROM ${artifactPatterns} WHERE ${artifactPatterns.kind} = 'skill' AND ${isPattern(patterns)})`
  const rows = await drizzle(db).all<TelemetrySum>(sql`
    SELECT skill_id, count(DISTINCT key_id || char(0) || client) AS clients, sum(calls) AS calls, sum(success) AS success,
      ${mean('delta_cost')}, ${mean('delta_p95')}
    FROM ${telemetry} WHERE window_start >= ${since} AND ${visible}
      ${skill_id === undefined ? sql.empty() : sql`AND skill_id = ${skill_id}`}
      ${cursor === undefined ? sql.empty() : sql`AND skill_id > ${cursor}`}
    GROUP BY skill_id ORDER BY skill_id LIMIT ${limit + 1}`)
  return { items: rows.slice(0, limit), more: rows.length > limit }
}

/** Deletes at most `limit` rows of windows that ended before `before`; returns the number. */
export async function forgetTelemetry(db: D1Database, before: number, limit: number): Promise<number> {
  const old = 'SELECT key_id, client, window_start, skill_id FROM telemetry WHERE window_end < ?1 LIMIT ?2'
  const { meta } = await db
    .prepare(`DELETE FROM telemetry WHERE (key_id, client, window_start, skill_id) IN (${old})`)
    .bind(before, limit)
    .run()
  return meta.changes
}
