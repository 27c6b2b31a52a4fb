import { and, asc, desc, eq, gt, gte, lt, or } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { within } from '../../../store/events.ts'
import { hookCounts, hooks } from './tables.ts'

export type HookRow = typeof hooks.$inferSelect
type HookCount = { hook: string; result: string; count: number }

export async function findHook(db: D1Database, address: string): Promise<HookRow | null> {
  return (await drizzle(db).select().from(hooks).where(eq(hooks.address, address)).get()) ?? null
}

/** The hooks of a name, within `patterns`: first the hooks of `scope`, then by address. */
export async function hooksNamed(
  db: D1Database,
  { name, patterns, scope = '', limit }: { name: string; patterns: readonly string[]; scope?: string; limit: number },
): Promise<HookRow[]> {
  const where = and(or(eq(hooks.address, name), tenantsOf(name)), within(hooks.scope, patterns))
  return drizzle(db)
    .select()
    .from(hooks)
    .where(where)
    .orderBy(desc(eq(hooks.scope, scope)), asc(hooks.address))
    .limit(limit)
}

/** The addresses that begin with a name and a dot, which the slash follows. */
const tenantsOf = (name: string) => and(gte(hooks.address, `${name}.`), lt(hooks.address, `${name}/`))

/** Creates a tenant's hook, unless its scope has got one of the name meanwhile: false then. */
export async function addTenantHook(db: D1Database, name: string, row: HookRow): Promise<boolean> {
  const { address, scope, scheme, mapping, created_at } = row
  const sql = `INSERT INTO hooks (name, scope, scheme, mapping, created_at) SELECT ?1, ?2, ?3, ?4, ?5
    WHERE NOT EXISTS (SELECT 1 FROM hooks WHERE name > ?6 || '.' AND name < ?6 || '/' AND scope = ?2)`
  const { meta } = await db.prepare(sql).bind(address, scope, scheme, JSON.stringify(mapping), created_at, name).run()
  return meta.changes > 0
}

/** Creates or replaces a hook. */
export async function putHook(db: D1Database, row: HookRow): Promise<void> {
  const { address: _address, ...rest } = row
  await drizzle(db).insert(hooks).values(row).onConflictDoUpdate({ target: hooks.address, set: rest })
}

export async function deleteHook(db: D1Database, address: string): Promise<void> {
  const orm = drizzle(db)
  await orm.batch([orm.delete(hooks).where(eq(hooks.address, address)), orm.delete(hookCounts).where(eq(hookCounts.hook, address))])
}

/** Hooks of scopes within `patterns` by address, after `after`. */
export async function listHooks(
  db: D1Database,
  { patterns, after, limit }: { patterns: readonly string[]; after: string; limit: number },
): Promise<HookRow[]> {
  const where = and(within(hooks.scope, patterns), gt(hooks.address, after))
  return drizzle(db).select().from(hooks).where(where).orderBy(asc(hooks.address)).limit(limit)
}

export async function countsOf(db: D1Database, addresses: readonly string[]): Promise<HookCount[]> {
  const sql = 'SELECT hook, result, count FROM hook_counts WHERE hook IN (SELECT value FROM json_each(?1)) ORDER BY hook, result'
  return (await db.prepare(sql).bind(JSON.stringify(addresses)).all<HookCount>()).results
}

export async function addCounts(db: D1Database, counts: readonly HookCount[]): Promise<void> {
  const sql = `INSERT INTO hook_counts (hook, result, count)
    SELECT value->>'hook', value->>'result', value->>'count' FROM json_each(?1) WHERE value->>'hook' IN (SELECT name FROM hooks)
    ON CONFLICT (hook, result) DO UPDATE SET count = count + excluded.count`
  await db.prepare(sql).bind(JSON.stringify(counts)).run()
}
