import { asc, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { reflexUses } from './schema.ts'

/** The reflexes in a scope's chain, as it is now. */
export async function setUses(db: D1Database, scope: string, ids: readonly string[]): Promise<void> {
  const text = JSON.stringify(ids)
  await db.batch([
    db.prepare('DELETE FROM reflex_uses WHERE scope = ?1 AND reflex_id NOT IN (SELECT value FROM json_each(?2))').bind(scope, text),
    db
      .prepare('INSERT INTO reflex_uses (reflex_id, scope) SELECT value, ?1 FROM json_each(?2) WHERE true ON CONFLICT DO NOTHING')
      .bind(scope, text),
  ])
}

/** By name, the first `limit` of them. */
export async function scopesUsing(db: D1Database, id: string, limit: number): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ scope: reflexUses.scope })
    .from(reflexUses)
    .where(eq(reflexUses.reflex_id, id))
    .orderBy(asc(reflexUses.scope))
    .limit(limit)
  return rows.map(({ scope }) => scope)
}
