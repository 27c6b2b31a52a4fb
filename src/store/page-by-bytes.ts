import { asc, desc, getTableColumns, gte, inArray, sql, type Column, type SQL, type Table, and, eq, lt, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { AnySQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { limits } from '../base/limits.ts'
import { within } from './events.ts'

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

/** A page of a table's rows, newest first. `long`: the columns that decide a row's size. */
export async function listByAge<From extends Listed>(
  db: D1Database,
  { from, at, long }: { from: From; at: Column; long: Column[] },
  { patterns, scope, before, limit }: AgeQuery,
  condition?: SQL,
): Promise<PageOf<From['$inferSelect']>> {
  const inScope = from.scope && and(within(from.scope, patterns), scope === undefined ? undefined : eq(from.scope, scope))
  const where = and(inScope, condition, olderThan(before, at, from.id))
  const bytes = bytesOf(...long)
  const rows = await drizzle(db)
    .select({ ...getTableColumns<SQLiteTable>(from), bytes })
    .from<SQLiteTable>(from)
    .where(inArray(from.id, keysOfPage({ from, where, key: from.id, at, bytes, limit })))
    .orderBy(desc(at), desc(from.id))
  return pageOf(rows as (From['$inferSelect'] & { bytes: number })[], limit)
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

/** The rows after the last one of the previous page, or all. */
export function olderThan(before: PagePosition | undefined, at: Column, id: Column): SQL | undefined {
  return before && or(lt(at, before.at), and(eq(at, before.at), lt(id, before.id)))
}
