import { integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { buckets, families } from '../contract/statistics.ts'

const bucketOf = {
  family: text({ enum: families }).notNull(),
  bucket: text({ enum: buckets }).notNull(),
  start: integer().notNull(),
}

/**
 * A scope's numbers by minute, hour, day and in all. `values`: numbers by label and name. `seq`:
 * the last entry of the scope's log that they include.
 */
export const statistics = sqliteTable(
  'statistics',
  { ...bucketOf, scope: text().notNull(), values: text().notNull(), seq: integer().notNull().default(0) },
  (table) => [primaryKey({ columns: [table.family, table.bucket, table.start, table.scope] })],
)

/**
 * The numbers of many scopes with few events. A row has the scopes whose hash begins with `part`:
 * `scopes` has the values of each as JSONB, or as text in rows of before; `seqs` the last entry of
 * its log. A row of `statistics` hides the values of its scope.
 *
 * The table has rowids: without them SQLite reads each row that it compares with a key, of up to
 * 400 kB, as a whole.
 */
export const statisticsPacks = sqliteTable(
  'statistics_packs',
  { ...bucketOf, part: text().notNull(), revision: integer().notNull(), scopes: text().notNull(), seqs: text().notNull() },
  (table) => [unique('statistics_packs_bucket').on(table.family, table.bucket, table.start, table.part)],
)

/** Answers of scopes to the queue, until `statistics_packs` has them: JSON after JSON. */
export const statisticsWaiting = sqliteTable('statistics_waiting', { id: integer().primaryKey(), answers: text().notNull() })

/**
 * The sums over all scopes with a prefix, of ended buckets that did not change since. `total`:
 * numbers by name. `labels`: numbers by label and name; null if they are too many for a row.
 */
export const statisticsSums = sqliteTable(
  'statistics_sums',
  { ...bucketOf, prefix: text().notNull(), total: text().notNull(), labels: text() },
  (table) => [primaryKey({ columns: [table.family, table.bucket, table.start, table.prefix] })],
)

/** Buckets that changed since their sums, if they have any. */
export const statisticsChanges = sqliteTable('statistics_changes', bucketOf, (table) => [
  primaryKey({ columns: [table.family, table.bucket, table.start] }),
])
