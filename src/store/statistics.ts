import { and, count, eq, isNotNull, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { jsonChunks } from '../base/byte-length.ts'
import { bucketSteps, type Bucket, type BucketRow, type Family } from '../contract/reports/statistics.ts'
import { patternMatchesSql, prefixOf } from '../contract/scope-pattern.ts'
import { readableBy } from './artifacts/patterns.ts'
import { artifacts, artifactVersions } from './schema.ts'

const DAY_MS = 86_400_000
/** How long buckets are kept. Days and totals are kept for good. */
const KEPT_MS = { minute: DAY_MS, hour: 31 * DAY_MS }
/** Sorts after every character of a scope. */
const LAST = '\u007F'

/** Writes absolute values: a repetition changes nothing. */
export async function writeStatistics(db: D1Database, scope: string, rows: readonly BucketRow[]): Promise<void> {
  const chunks = jsonChunks(rows.map((row) => JSON.stringify(row)))
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(UPSERT).bind(chunk, scope)))
}

const UPSERT = `INSERT INTO statistics (family, bucket, start, scope, "values")
  SELECT value->>'family', value->>'bucket', value->>'start', ?2, value->'values' FROM json_each(?1) WHERE true
  ON CONFLICT (family, bucket, start, scope) DO UPDATE SET "values" = excluded."values"`

/** Deletes expired minutes and hours. */
export async function forgetStatistics(db: D1Database, now: number, limit: number): Promise<number> {
  const gone = await db.batch(
    (['scope', 'reflex', 'skill'] as const).flatMap((family) =>
      (['minute', 'hour'] as const).map((bucket) => db.prepare(FORGET).bind(family, bucket, now - KEPT_MS[bucket], limit)),
    ),
  )
  return gone.reduce((most, { meta }) => Math.max(most, meta.changes), 0)
}

const FORGET = `DELETE FROM statistics WHERE (family, bucket, start, scope) IN (SELECT family, bucket, start, scope FROM statistics
  WHERE family = ?1 AND bucket = ?2 AND start < ?3 LIMIT ?4)`

/** `keys`: names of numbers, a histogram's without the bucket. `since`, `until`: starts, in ms. */
export type StatisticsQuery = {
  family: Family
  bucket: Bucket
  since: number
  until: number
  patterns: readonly string[]
  keys: readonly string[]
  by: 'label' | 'scope' | null
}
/** A sum over scopes and, unless `by` asks for them, labels. */
export type Sum = { start: number; series: string; key: string; value: number }

/** More sums than this are an error: a Worker holds them in memory. */
export const MOST_SUMS = 50_000

/** Sums buckets: one search of the primary key for each start and range of scopes. */
export async function sumStatistics(db: D1Database, query: StatisticsQuery): Promise<Sum[]> {
  return (await statisticsStatement(db, query).all<Sum>()).results
}

export function statisticsStatement(
  db: D1Database,
  { family, bucket, since, until, patterns, keys, by }: StatisticsQuery,
): D1PreparedStatement {
  const series = by === 'label' ? 'label.key' : by === 'scope' ? 's.scope' : `''`
  const seen = patterns.includes('*') ? 'true' : `EXISTS (SELECT 1 FROM json_each(?6) WHERE ${patternMatchesSql('s.scope')})`
  const sql = `WITH RECURSIVE starts (start) AS (SELECT ?3 UNION ALL SELECT start + ?7 FROM starts WHERE start + ?7 < ?4)
    SELECT s.start AS start, ${series} AS series, number.key AS "key",
      CASE WHEN number.key GLOB 'max_*' THEN max(number.value) ELSE sum(number.value) END AS value
    FROM starts CROSS JOIN json_each(?5) AS range
      CROSS JOIN statistics AS s ON s.family = ?1 AND s.bucket = ?2 AND s.start = starts.start
        AND s.scope >= range.value->>0 AND s.scope < range.value->>1
      CROSS JOIN json_each(s."values") AS label CROSS JOIN json_each(label.value) AS number
    WHERE ${seen} AND substr(number.key, 1, instr(number.key || '.', '.') - 1) IN (SELECT value FROM json_each(?8))
    GROUP BY 1, 2, 3 LIMIT ${MOST_SUMS + 1}`
  const step = bucket === 'all' ? 1 : bucketSteps[bucket]
  const ranges = JSON.stringify(rangesOf(patterns))
  return db.prepare(sql).bind(family, bucket, since, until, ranges, JSON.stringify(patterns), step, JSON.stringify(keys))
}

/** Ranges of scopes that do not overlap and hold all that the patterns match. */
function rangesOf(patterns: readonly string[]): [string, string][] {
  const prefixes = [...new Set(patterns.filter((pattern) => pattern.includes('*')).map(prefixOf))]
  const open = prefixes.filter((prefix) => !prefixes.some((other) => other !== prefix && prefix.startsWith(other)))
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*') && !open.some((prefix) => pattern.startsWith(prefix))))
  return [
    ...open.map((prefix): [string, string] => [prefix, `${prefix}${LAST}`]),
    // A space sorts before every character of a scope.
    ...Array.from(exact, (scope): [string, string] => [scope, `${scope} `]),
  ]
}

/** Numbers of versions that a key may read. `learned`: written by an agent. */
export async function countVersions(db: D1Database, scopes: readonly string[]) {
  const { kind, state, provenance } = artifactVersions
  const learned = isNotNull(sql`${provenance}->>'scope'`)
  return drizzle(db)
    .select({ kind, state, versions: count(), learned: sql<number>`coalesce(sum(${learned}), 0)` })
    .from(artifactVersions)
    .innerJoin(artifacts, and(eq(artifacts.kind, kind), eq(artifacts.id, artifactVersions.id)))
    .where(await readableBy(db, scopes))
    .groupBy(kind, state)
}
