import { and, desc, eq, lt, or, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { within } from './events.ts'
import { blocks } from './schema.ts'

export type Block = typeof blocks.$inferSelect

/** `patterns` are the scopes that may be seen; `before` is the last one of the page before. */
export type BlockQuery = {
  patterns: readonly string[]
  scope?: string | undefined
  before?: { at: number; id: string } | undefined
  limit: number
}

/** Newest first. */
export async function listBlocks(db: D1Database, { patterns, scope, before, limit }: BlockQuery): Promise<Block[]> {
  return drizzle(db)
    .select()
    .from(blocks)
    .where(
      and(
        within(blocks.scope, patterns),
        scope === undefined ? undefined : eq(blocks.scope, scope),
        before === undefined ? undefined : isBefore(before),
      ),
    )
    .orderBy(desc(blocks.blocked_at), desc(blocks.id))
    .limit(limit)
}

export async function findBlock(db: D1Database, id: string): Promise<Block | null> {
  const row = await drizzle(db).select().from(blocks).where(eq(blocks.id, id)).get()
  return row ?? null
}

function isBefore({ at, id }: { at: number; id: string }): SQL | undefined {
  return or(lt(blocks.blocked_at, at), and(eq(blocks.blocked_at, at), lt(blocks.id, id)))
}
