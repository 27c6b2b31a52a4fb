import { asc, desc, getTableColumns, gt, gte, inArray, lte, sql, type Column, type SQL, type Table, and, eq, lt, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { AnySQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { limits } from '../base/limits.ts'
import { patternMatchesSql } from '../contract/principal.ts'
import { within } from './events.ts'
import { rangesOf } from './scope-ranges.ts'

/** The rows of a list ordered by `at`, if given, then by `key`: both falling unless `rising`. */
type List = {
  from: Table | SQL
  where: SQL | undefined
  key: Column
  at?: Column
  bytes: SQL<number>
  limit: number
  rising?: boolean
}
export type PageOf<Row> = { items: Row[]; more: boolean }

/** The size of a row's long columns, without reading them. */
export const bytesOf = (...columns: (Column | SQL)[]): SQL<number> =>
  sql<number>`(${sql.join(
    columns.map((column) => sql`coalesce(octet_length(${column}), 0)`),
    sql` + `,
  )})`

/** The keys of a page of limited rows and bytes, and one more if the list continues. */
export function keysOfPage({ from, where, key, at, bytes, limit, rising = false }: List): SQL {
  const way = sql.raw(rising ? 'ASC' : 'DESC')
  const order = at ? sql`${at} ${way}, ${key} ${way}` : sql`${key} ${way}`
  return sql`(SELECT key FROM
    (SELECT key, sum(bytes) OVER (ORDER BY at ${way}, key ${way}) - bytes AS before FROM
      (SELECT ${key} AS key, ${at ?? key} AS at, ${bytes} AS bytes FROM ${from} WHERE ${where ?? sql`true`}
        ORDER BY ${order} LIMIT ${limit + 1}))
    WHERE before < ${limits.page_bytes})`
}

/** The page of the rows of `keysOfPage`, each with its `bytes`. */
export function pageOf<Row extends { bytes: number }>(rows: readonly Row[], limit: number): PageOf<Omit<Row, 'bytes'>> {
  const total = rows.reduce((sum, { bytes }) => sum + bytes, 0)
  const more = rows.length > limit || (rows.length > 1 && total >= limits.page_bytes)
  const items = more ? rows.slice(0, -1) : rows
  return { items: items.map(({ bytes: _bytes, ...row }) => row), more }
}

/** `patterns`: the scopes that the caller may see. `before`: the last row of the previous page. */
export type AgeQuery = { patterns: readonly string[]; scope?: string | undefined; before?: PagePosition | undefined; limit: number }
/** A table without scopes says itself, in a condition, who may see a row. */
type Listed = SQLiteTable & { id: AnySQLiteColumn; scope?: AnySQLiteColumn }

/**
 * `by_scope`: an index has the rows of each scope by age. `indexed`: another one has the rows for
 * which this holds.
 */
type ByAge<From extends Listed> = { from: From; at: Column; long: Column[]; by_scope?: boolean; indexed?: SQL | undefined }

/** A page of a table's rows, newest first. `long`: the columns that decide a row's size. */
export async function listByAge<From extends Listed>(
  db: D1Database,
  { from, at, long, by_scope = false, indexed }: ByAge<From>,
  { patterns, scope, before, limit }: AgeQuery,
  condition?: SQL,
): Promise<PageOf<From['$inferSelect']>> {
  const older = olderThan(before, at, from.id)
  const isNarrow = by_scope && scope === undefined && !patterns.includes('*')
  const inScope = from.scope && and(within(from.scope, patterns), scope === undefined ? undefined : eq(from.scope, scope))
  const where = isNarrow
    ? inArray(from.id, newestWithin({ from, at }, { patterns, older, indexed, condition, limit: limit + 1 }))
    : and(inScope, condition, older)
  const bytes = bytesOf(...long)
  const rows = await drizzle(db)
    .select({ ...getTableColumns<SQLiteTable>(from), bytes })
    .from<SQLiteTable>(from)
    .where(inArray(from.id, keysOfPage({ from, where, key: from.id, at, bytes, limit })))
    .orderBy(desc(at), desc(from.id))
  return pageOf(rows as (From['$inferSelect'] & { bytes: number })[], limit)
}

/** So many of the newest rows are looked at first, whatever their scope. */
const NEAR = 2000

/** `indexed`: a part of the condition for which an index has the rows by age. */
type Newest = {
  patterns: readonly string[]
  older?: SQL | undefined
  indexed?: SQL | undefined
  condition?: SQL | undefined
  limit: number
}

/**
 * The ids of the newest rows in the scopes that the patterns cover, for a table with an index by
 * scope and age. Where few of all rows are in them it reads their index scope by scope: rows of
 * other tenants, however many, cost a reader nothing.
 */
export function newestWithin(
  { from, at }: Pick<ByAge<Listed>, 'from' | 'at'>,
  { patterns, older = sql`true`, indexed = sql`true`, condition = sql`true`, limit }: Newest,
): SQL {
  const { id, scope } = from
  if (!scope) throw new TypeError('a table without scopes has no rows by scope')
  const newest = sql`ORDER BY ${at} DESC, ${id} DESC`
  const near = Math.max(NEAR, 2 * limit)
  const all = sql`SELECT * FROM ${from} WHERE ${older} AND ${indexed} ${newest} LIMIT ${near}`
  const ranges = JSON.stringify(rangesOf(patterns).map(({ first, end }) => [first, end]))
  const isCovered = sql`EXISTS (SELECT 1 FROM json_each(${JSON.stringify(patterns)}) WHERE ${sql.raw(patternMatchesSql('found.scope'))})`
  return sql`(WITH RECURSIVE
    near (id) AS MATERIALIZED (SELECT ${id} FROM (${all}) AS ${from}
      WHERE ${within(scope, patterns)} AND ${condition} ${newest} LIMIT ${limit}),
    found (scope, last) AS (
      SELECT (SELECT min(${scope}) FROM ${from} WHERE ${scope} >= range.value->>0 AND ${scope} < range.value->>1), range.value->>1
        FROM json_each(${ranges}) AS range
        WHERE (SELECT count(*) FROM near) < ${limit} AND (SELECT count(*) FROM (${all})) = ${near}
      UNION ALL SELECT (SELECT min(${scope}) FROM ${from} WHERE ${scope} > found.scope AND ${scope} < found.last), found.last
        FROM found WHERE found.scope IS NOT NULL)
    SELECT id FROM near UNION ALL SELECT id FROM (SELECT one.id FROM found CROSS JOIN ${from} AS one
      WHERE found.scope IS NOT NULL AND ${isCovered}
        AND one.id IN (SELECT ${id} FROM ${from} WHERE ${scope} = found.scope AND ${older} AND ${condition} ${newest} LIMIT ${limit})
      ORDER BY one.${sql.identifier(at.name)} DESC, one.id DESC LIMIT ${limit}))`
}

/** True at or after `since` and before `until`, which are ISO times. */
export const between = (at: Column, { since, until }: { since?: string | undefined; until?: string | undefined }): SQL | undefined =>
  and(since === undefined ? undefined : gte(at, Date.parse(since)), until === undefined ? undefined : lt(at, Date.parse(until)))

/** Deletes at most `limit` rows before `before` (ms), the oldest first; returns the number. */
export async function forgetByAge(
  db: D1Database,
  { from, at }: { from: Listed; at: Column },
  before: number,
  limit: number,
): Promise<number> {
  const orm = drizzle(db)
  const old = orm.select({ id: from.id }).from<SQLiteTable>(from).where(lt(at, before)).orderBy(asc(at)).limit(limit)
  const { meta } = await orm.delete(from).where(inArray(from.id, old)).run()
  return meta.changes
}

/** A position in a list ordered by age, newest first, then by id; `at` is in ms. */
export type PagePosition = { at: number; id: string }

/** The rows up to this one, in the same order. */
export const upTo = (last: PagePosition | undefined, at: Column, id: Column): SQL | undefined =>
  last && and(gte(at, last.at), or(gt(at, last.at), gte(id, last.id)))

/** The rows after the last one of the previous page, or all. */
export function olderThan(before: PagePosition | undefined, at: Column, id: Column): SQL | undefined {
  // The first condition lets an index begin there.
  return before && and(lte(at, before.at), or(lt(at, before.at), lt(id, before.id)))
}
