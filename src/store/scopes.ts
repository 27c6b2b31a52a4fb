import { and, asc, eq, gt, lt } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { within } from './events.ts'
import { scopes } from './schema.ts'

const MOST_OVERDUE = 100

/** Scopes by name, after `after`. */
export async function listScopes(
  db: D1Database,
  { patterns, after, limit }: { patterns: readonly string[]; after: string; limit: number },
) {
  const rows = await drizzle(db)
    .select({ scope: scopes.scope, agent: scopes.agent, open: scopes.open, updated_at: scopes.updated_at })
    .from(scopes)
    .where(and(within(scopes.scope, patterns), gt(scopes.scope, after)))
    .orderBy(asc(scopes.scope))
    .limit(limit)
  return rows.map(({ updated_at, ...row }) => ({ ...row, updated_at: new Date(updated_at).toISOString() }))
}

/** Scopes whose alarm is overdue since `before`. */
export async function overdueScopes(db: D1Database, before: number): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ scope: scopes.scope })
    .from(scopes)
    .where(lt(scopes.wake_at, before))
    .orderBy(asc(scopes.wake_at))
    .limit(MOST_OVERDUE)
  return rows.map(({ scope }) => scope)
}

/** Scopes that learn by themselves and were started before `before`; notes a start at `now`. */
export async function startLearning(
  db: D1Database,
  { before, now, limit }: { before: number; now: number; limit: number },
): Promise<string[]> {
  const sql = `UPDATE scopes SET learned_at = ?2 WHERE scope IN
    (SELECT scope FROM scopes WHERE learns = 1 AND learned_at < ?1 ORDER BY learned_at LIMIT ?3) RETURNING scope`
  const { results } = await db.prepare(sql).bind(before, now, limit).all<{ scope: string }>()
  return results.map(({ scope }) => scope)
}

/** Deletes idle scopes without a report since `before`; their next event lists them again. */
export async function forgetScopes(db: D1Database, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM scopes WHERE scope IN
    (SELECT scope FROM scopes WHERE updated_at < ?1 AND wake_at IS NULL AND open = 0 LIMIT ?2)`
  return (await db.prepare(sql).bind(before, limit).run()).meta.changes
}

export async function setWake(db: D1Database, scope: string, wake_at: number | null): Promise<void> {
  await drizzle(db).update(scopes).set({ wake_at }).where(eq(scopes.scope, scope))
}
