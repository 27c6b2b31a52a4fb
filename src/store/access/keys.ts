import { and, count, desc, eq, getTableColumns, inArray, sql, type Column, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { warn } from '../../base/warn.ts'
import { patternMatchesSql } from '../../contract/principal.ts'
import { olderThan, type PagePosition, bytesOf, keysOfPage, pageOf, type PageOf } from '../page-by-bytes.ts'
import { keys } from '../schema.ts'

type KeyRow = typeof keys.$inferSelect
export type ListedKey = Omit<KeyRow, 'hash'>

export async function insertKey(database: D1Database, key: KeyRow): Promise<void> {
  await drizzle(database).insert(keys).values(key)
}

export async function findKey(database: D1Database, id: string): Promise<KeyRow | null> {
  return (await drizzle(database).select().from(keys).where(eq(keys.id, id)).get()) ?? null
}

const USED_MS = 3_600_000

/** Notes the use of a key: once an hour at most, for as long as the caller keeps its record. */
export async function noteUse(database: D1Database, key: { id: string; used_at?: number | null }): Promise<void> {
  const now = Date.now()
  if (Math.abs(now - (key.used_at ?? 0)) < USED_MS) return
  key.used_at = now
  try {
    await drizzle(database).update(keys).set({ used_at: now }).where(eq(keys.id, key.id)).run()
  } catch (error) {
    warn({ message: 'the use of a key could not be noted', error })
  }
}

/** Returns the keys of `ids` that exist and have not expired by `now`. */
export async function validKeys(database: D1Database, ids: readonly string[], now: number): Promise<Set<string>> {
  const rows = await drizzle(database)
    .select({ id: keys.id })
    .from(keys)
    .where(
      sql`${keys.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)})) AND (${keys.expires_at} IS NULL OR ${keys.expires_at} > ${now})`,
    )
  return new Set(rows.map(({ id }) => id))
}

type KeyQuery = { limit: number; before?: PagePosition | undefined; patterns: readonly string[] }

/** Keys whose scopes `patterns` cover, newest first, without their hashes. */
export async function listKeys(database: D1Database, page: KeyQuery): Promise<PageOf<ListedKey>> {
  const { hash: _hash, ...listed } = getTableColumns(keys)
  const { limit, before, patterns } = page
  const where = and(areCovered(keys.scopes, patterns), olderThan(before, keys.created_at, keys.id))
  const bytes = bytesOf(keys.name, keys.roles, keys.scopes)
  const rows = await drizzle(database)
    .select({ ...listed, bytes })
    .from(keys)
    .where(inArray(keys.id, keysOfPage({ from: keys, where, key: keys.id, at: keys.created_at, bytes, limit })))
    .orderBy(desc(keys.created_at), desc(keys.id))
  return pageOf(rows, limit)
}

/** The number of keys whose scopes `patterns` cover. */
export async function countKeys(database: D1Database, patterns: readonly string[]): Promise<number> {
  return (await drizzle(database).select({ keys: count() }).from(keys).where(areCovered(keys.scopes, patterns)).get())?.keys ?? 0
}

/** The keys that a scope may learn from alone. */
export async function teachingKeys(database: D1Database, scope: string): Promise<string[]> {
  // Keys of other tenants may be many: they stay in D1.
  const matches = sql`EXISTS (SELECT 1 FROM (SELECT ${scope} AS scope) AS asked, json_each(${keys.scopes}) WHERE ${sql.raw(patternMatchesSql('asked.scope'))})`
  const rows = await drizzle(database)
    .select({ id: keys.id })
    .from(keys)
    .where(and(eq(keys.teaches, true), matches))
  return rows.map(({ id }) => id)
}

export async function deleteKey(database: D1Database, id: string): Promise<boolean> {
  return (await drizzle(database).delete(keys).where(eq(keys.id, id)).returning({ id: keys.id })).length > 0
}

export async function anyKey(database: D1Database): Promise<boolean> {
  return (await drizzle(database).select({ id: keys.id }).from(keys).limit(1)).length > 0
}

/** True for rows whose patterns, a JSON array, are all within these, matched as text. */
export function areCovered(column: Column, patterns: readonly string[]): SQL | undefined {
  if (patterns.includes('*')) return undefined
  const matches = sql.raw(patternMatchesSql('own.value'))
  const isCovered = sql`EXISTS (SELECT 1 FROM json_each(${JSON.stringify(patterns)}) WHERE ${matches})`
  return sql`NOT EXISTS (SELECT 1 FROM json_each(${column}) AS own WHERE NOT ${isCovered})`
}
