import { jsonChunks } from '../../../base/json.ts'
import type { BucketRow } from '../contract/statistics.ts'

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
