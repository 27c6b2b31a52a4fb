import { textHash } from '../../../base/hash.ts'
import { jsonChunks } from '../../../base/json.ts'
import { isNewestIn, type PartsTable } from '../../../store/packs/scope-parts.ts'
import type { BucketRow } from '../contract/statistics.ts'

/** The numbers of scopes with few events, by bucket. */
export const PACKS: PartsTable = { packs: 'statistics_packs', own: 'statistics', key: ['family', 'bucket', 'start'] }

/**
 * SQL that is true for a row of a scope's own, unless a part has newer values. `?2`, `?3` and `?4`
 * are the scope, the entry of its log and its hash.
 */
const IS_NEWEST = isNewestIn(PACKS, { scope: '?2', seq: '?3', hash: '?4' })

/**
 * Writes absolute values, which include the log of the scope up to `seq`: a repetition changes
 * nothing, and neither do values that D1 writes later than newer ones. The sums of the buckets are
 * dropped in the same transaction.
 */
export async function writeStatistics(db: D1Database, scope: string, rows: readonly BucketRow[], seq = 0): Promise<void> {
  const chunks = jsonChunks(rows.map((row) => JSON.stringify(row)))
  if (chunks.length === 0) return
  await db.batch([...chunks.map((chunk) => db.prepare(UPSERT).bind(chunk, scope, seq, textHash(scope))), ...changeStatements(db, rows)])
}

const UPSERT = `INSERT INTO statistics (family, bucket, start, scope, "values", seq)
  SELECT value->>'family', value->>'bucket', value->>'start', ?2, value->'values', ?3 FROM json_each(?1) WHERE ${IS_NEWEST}
  ON CONFLICT (family, bucket, start, scope) DO UPDATE SET "values" = excluded."values", seq = excluded.seq WHERE excluded.seq >= statistics.seq`

/** Most buckets are noted already, which writes nothing. `all` never ends. */
const NOTE_CHANGE = `INSERT INTO statistics_changes (family, bucket, start)
  SELECT value->>'family', value->>'bucket', value->>'start' FROM json_each(?1) WHERE value->>'bucket' <> 'all'
  ON CONFLICT DO NOTHING`
const DROP_SUMS = `DELETE FROM statistics_sums WHERE (family, bucket, start) IN
  (SELECT value->>'family', value->>'bucket', value->>'start' FROM json_each(?1))`

/** The statements that drop the sums of buckets, in the batch that changes these. */
export function changeStatements(db: D1Database, changed: readonly Omit<BucketRow, 'values'>[]): D1PreparedStatement[] {
  const chunks = jsonChunks(changed.map(({ family, bucket, start }) => JSON.stringify({ family, bucket, start })))
  return chunks.flatMap((chunk) => [db.prepare(NOTE_CHANGE).bind(chunk), db.prepare(DROP_SUMS).bind(chunk)])
}
