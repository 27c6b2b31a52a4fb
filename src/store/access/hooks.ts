import { and, asc, eq, gt } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { within } from '../events.ts'
import { hookCounts, hooks } from '../schema.ts'

export type HookRow = typeof hooks.$inferSelect
export type HookCount = { hook: string; result: string; count: number }

export async function findHook(db: D1Database, name: string): Promise<HookRow | null> {
  return (await drizzle(db).select().from(hooks).where(eq(hooks.name, name)).get()) ?? null
}

/** Creates or replaces a hook. */
export async function putHook(db: D1Database, row: HookRow): Promise<void> {
  const { name: _name, ...rest } = row
  await drizzle(db).insert(hooks).values(row).onConflictDoUpdate({ target: hooks.name, set: rest })
}

export async function deleteHook(db: D1Database, name: string): Promise<void> {
  const orm = drizzle(db)
  await orm.batch([orm.delete(hooks).where(eq(hooks.name, name)), orm.delete(hookCounts).where(eq(hookCounts.hook, name))])
}

/** Hooks of scopes within `patterns` by name, after `after`. */
export async function listHooks(
  db: D1Database,
  { patterns, after, limit }: { patterns: readonly string[]; after: string; limit: number },
): Promise<HookRow[]> {
  const where = and(within(hooks.scope, patterns), gt(hooks.name, after))
  return drizzle(db).select().from(hooks).where(where).orderBy(asc(hooks.name)).limit(limit)
}

export async function countsOf(db: D1Database, names: readonly string[]): Promise<HookCount[]> {
  const sql = 'SELECT hook, result, count FROM hook_counts WHERE hook IN (SELECT value FROM json_each(?1)) ORDER BY hook, result'
  return (await db.prepare(sql).bind(JSON.stringify(names)).all<HookCount>()).results
}

/** Adds to the counts of hooks that exist. */
export async function addCounts(db: D1Database, counts: readonly HookCount[]): Promise<void> {
  const sql = `INSERT INTO hook_counts (hook, result, count)
    SELECT value->>'hook', value->>'result', value->>'count' FROM json_each(?1) WHERE value->>'hook' IN (SELECT name FROM hooks)
    ON CONFLICT (hook, result) DO UPDATE SET count = count + excluded.count`
  await db.prepare(sql).bind(JSON.stringify(counts)).run()
}
