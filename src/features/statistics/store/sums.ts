import { warn } from '../../../base/warn.ts'
import { bucketSteps, families } from '../contract/statistics.ts'
import { isShown } from './packed.ts'

const DAY_MS = 86_400_000
/** The time for which buckets are kept. Days and totals are kept for ever. */
const KEPT_MS = { minute: DAY_MS, hour: 31 * DAY_MS }
/** A query over fewer scopes sums the rows. */
const FEWEST_SCOPES = 16
/** Prefixes end with `/`; deeper ones are summed from rows. */
const DEEPEST = 3
/** D1 takes 2 MB in a row. */
const MOST_LABELS_BYTES = 1_000_000

type Changed = { family: string; bucket: 'minute' | 'hour' | 'day'; start: number }

/**
 * Sums up to `limit` ended buckets over all scopes, and over those with a common prefix, so that a
 * query reads a row and not one for each scope. Computed from the rows, so a repetition changes
 * nothing.
 */
export async function sumEnded(db: D1Database, now: number, limit: number): Promise<number> {
  const ended = (['minute', 'hour', 'day'] as const).map((bucket) => [bucket, now - bucketSteps[bucket]])
  const { results } = await db.prepare(ENDED).bind(JSON.stringify(ended), limit).all<Changed>()
  for (const { family, bucket, start } of results) {
    const statement = (text: string, ...more: unknown[]) => db.prepare(text).bind(family, bucket, start, ...more)
    await db.batch([
      statement(DROP),
      statement(SUM, FEWEST_SCOPES, MOST_LABELS_BYTES, DEEPEST),
      statement('DELETE FROM statistics_changes WHERE family = ?1 AND bucket = ?2 AND start = ?3'),
    ])
  }
  return results.length
}

const DROP = 'DELETE FROM statistics_sums WHERE family = ?1 AND bucket = ?2 AND start = ?3'

/** A minute whose packed numbers are shorter is read as fast as it is. */
const LEAST_SUMMED = 20_000
/** The sweep sums what is older. */
const OPEN_MS = 10 * bucketSteps.minute

/**
 * Sums minutes of many scopes that have not ended, or were not swept yet, over all scopes alone: a
 * reader asks for several metrics. Whatever changes such a minute drops its sum in the same batch.
 */
export async function sumOpenMinutes(db: D1Database, now: number): Promise<void> {
  const { results } = await db
    .prepare(OPEN)
    .bind(JSON.stringify(families), now - OPEN_MS)
    .all<{ family: string; start: number }>()
  for (const { family, start } of results) {
    const of = [family, 'minute', start]
    await db.batch([db.prepare(DROP).bind(...of), db.prepare(SUM).bind(...of, FEWEST_SCOPES, MOST_LABELS_BYTES, 0)])
  }
}

const OPEN = `SELECT c.family AS family, c.start AS start
  FROM json_each(?1) AS asked CROSS JOIN statistics_changes AS c ON c.family = asked.value AND c.bucket = 'minute' AND c.start > ?2
  WHERE NOT EXISTS (SELECT 1 FROM statistics_sums AS t WHERE t.family = c.family AND t.bucket = c.bucket AND t.start = c.start)
    AND (SELECT sum(octet_length(scopes)) FROM statistics_packs AS w WHERE w.family = c.family AND w.bucket = c.bucket AND w.start = c.start) >= ${LEAST_SUMMED}`

/** Readers in one process sum no more often. */
const READ_PACE_MS = 2000
let read_at = 0

/** The same for a reader, who otherwise adds up the scopes. */
export async function sumOpenNow(db: D1Database, now = Date.now()): Promise<void> {
  if (now - read_at < READ_PACE_MS && now >= read_at) return
  read_at = now
  try {
    await sumOpenMinutes(db, now)
  } catch (error) {
    warn({ message: 'failed to sum open minutes; their scopes are added up', error })
  }
}

const ENDED = `SELECT c.family AS family, c.bucket AS bucket, c.start AS start
  FROM statistics_changes AS c JOIN json_each(?1) AS ended ON ended.value->>0 = c.bucket AND c.start <= ended.value->>1 LIMIT ?2`

const SUM = `INSERT INTO statistics_sums (family, bucket, start, prefix, total, labels)
  WITH RECURSIVE
    scopes (scope, "values", prefix, depth) AS (
      SELECT scope, "values", '', 0 FROM statistics WHERE family = ?1 AND bucket = ?2 AND start = ?3
      UNION ALL
      SELECT s.key, s.value, '', 0 FROM statistics_packs AS w CROSS JOIN json_each(w.scopes) AS s
      WHERE w.family = ?1 AND w.bucket = ?2 AND w.start = ?3 AND ${isShown('w', 's.key')}
      UNION ALL
      SELECT scope, "values", substr(scope, 1, length(prefix) + instr(substr(scope, length(prefix) + 1), '/')), depth + 1 FROM scopes
      WHERE depth < ?6 AND instr(substr(scope, length(prefix) + 1), '/') > 0),
    numbers AS MATERIALIZED (
      SELECT scopes.prefix AS prefix, label.key AS label, number.key AS name,
        CASE WHEN number.key GLOB 'max_*' THEN max(number.value) ELSE sum(number.value) END AS value
      FROM scopes CROSS JOIN json_each(scopes."values") AS label CROSS JOIN json_each(label.value) AS number
      WHERE scopes.prefix IN (SELECT prefix FROM scopes GROUP BY 1 HAVING prefix = '' OR count(*) >= ?4)
      GROUP BY 1, 2, 3),
    totals AS (SELECT prefix, json_group_object(name, value) AS total FROM (
      SELECT prefix, name, CASE WHEN name GLOB 'max_*' THEN max(value) ELSE sum(value) END AS value FROM numbers GROUP BY 1, 2) GROUP BY 1),
    labels AS (SELECT prefix, json_group_object(label, json(numbers)) AS labels FROM (
      SELECT prefix, label, json_group_object(name, value) AS numbers FROM numbers GROUP BY 1, 2) GROUP BY 1)
  SELECT ?1, ?2, ?3, prefix, total, CASE WHEN octet_length(labels) <= ?5 THEN labels END FROM totals JOIN labels USING (prefix) WHERE true
  ON CONFLICT DO NOTHING`

/** Deletes expired minutes and hours. */
export async function forgetStatistics(db: D1Database, now: number, limit: number): Promise<number> {
  const gone = await db.batch(
    (['minute', 'hour'] as const).flatMap((bucket) =>
      families.flatMap((family) => FORGET.map((statement) => db.prepare(statement).bind(family, bucket, now - KEPT_MS[bucket], limit))),
    ),
  )
  return gone.reduce((most, { meta }) => Math.max(most, meta.changes), 0)
}

const FORGET = (
  [
    ['statistics', 'scope'],
    ['statistics_packs', 'part'],
    ['statistics_sums', 'prefix'],
    ['statistics_changes', 'start'],
  ] as const
).map(
  ([table, last]) => `DELETE FROM ${table} WHERE (family, bucket, start, ${last}) IN (SELECT family, bucket, start, ${last} FROM ${table}
  WHERE family = ?1 AND bucket = ?2 AND start < ?3 LIMIT ?4)`,
)
