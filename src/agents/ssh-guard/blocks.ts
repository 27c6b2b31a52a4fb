import { and, eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { within } from '../../store/events.ts'
import { olderThan, type Place } from '../../store/older-than.ts'
import { bytesOf, readPage, type PageOf } from '../../store/page-by-bytes.ts'
import { blocks } from './tables.ts'

export type Block = typeof blocks.$inferSelect

/**
 * `patterns` are the scopes that the caller may see; `before` is the last row of the previous page.
 */
export type BlockQuery = {
  patterns: readonly string[]
  scope?: string | undefined
  before?: Place | undefined
  limit: number
}

/** Returns a page, newest first. */
export async function listBlocks(db: D1Database, { patterns, scope, before, limit }: BlockQuery): Promise<PageOf<Block>> {
  const where = and(
    within(blocks.scope, patterns),
    scope === undefined ? undefined : eq(blocks.scope, scope),
    olderThan(before, blocks.blocked_at, blocks.id),
  )
  const bytes = bytesOf(blocks.reason)
  return readPage(db, { from: blocks, where, key: blocks.id, at: blocks.blocked_at, bytes, limit })
}

export async function findBlock(db: D1Database, id: string): Promise<Block | null> {
  const row = await drizzle(db).select().from(blocks).where(eq(blocks.id, id)).get()
  return row ?? null
}
