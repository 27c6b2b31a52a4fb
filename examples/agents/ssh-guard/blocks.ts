import { eq } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { blocks } from './tables.ts'
import { tellWebhook, webhookAt } from './webhook.ts'
import { listByAge, type AgeQuery, type PageOf } from '../../../src/store/page-by-bytes.ts'
import type { ToolCall } from '../../../src/tools/define-tool.ts'
import { storeOf } from '../../../src/store/store.ts'

export type Block = typeof blocks.$inferSelect

export const listBlocks = (db: D1Database, query: AgeQuery): Promise<PageOf<Block>> =>
  listByAge(db, { from: blocks, at: blocks.blocked_at, long: [blocks.reason] }, query)

export async function findBlock(db: D1Database, id: string): Promise<Block | null> {
  const row = await drizzle(db).select().from(blocks).where(eq(blocks.id, id)).get()
  return row ?? null
}

type Blocked = { address: string; reason: string }
type Call = Pick<ToolCall, 'env' | 'fetch' | 'scope' | 'signal' | 'now'>

/**
 * A row in D1 and a call of the webhook, both idempotent. The webhook's key includes the row's
 * time, so that a block after an unblock is a new one.
 */
export async function addBlock({ address, reason }: Blocked, { env, fetch, scope, signal, now }: Call): Promise<{ reported: boolean }> {
  const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
  const row = await storeOf(env)
    .prepare(
      'INSERT INTO blocks (scope, address, reason, blocked_at, id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET reason = reason RETURNING blocked_at',
    )
    .bind(scope, address, reason, now(), crypto.randomUUID())
    .first<{ blocked_at: number }>()
  const key = `${scope} block:${address} ${row?.blocked_at}`
  if (webhook) await tellWebhook(webhook, { scope, address, reason }, { fetch, signal, key })
  return { reported: webhook !== null }
}

/**
 * Calls the webhook before it deletes the row, so that a retry finds the row. Null if there is no
 * block.
 */
export async function liftBlock(address: string, { env, fetch, scope, signal }: Omit<Call, 'now'>): Promise<{ reported: boolean } | null> {
  const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
  const row = await storeOf(env)
    .prepare('SELECT blocked_at FROM blocks WHERE scope = ? AND address = ?')
    .bind(scope, address)
    .first<{ blocked_at: number }>()
  if (!row) return null
  const key = `${scope} unblock:${address} ${row.blocked_at}`
  if (webhook) await tellWebhook(webhook, { scope, address, unblock: true }, { fetch, signal, key })
  await storeOf(env).prepare('DELETE FROM blocks WHERE scope = ? AND address = ?').bind(scope, address).run()
  return { reported: webhook !== null }
}
