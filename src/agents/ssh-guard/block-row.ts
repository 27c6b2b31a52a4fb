import type { ToolCall } from '../../tools/define-tool.ts'
import { tellWebhook, webhookAt } from './webhook.ts'

/** An address or a network. */
type Blocked = { address: string; reason: string }
type Call = Pick<ToolCall, 'env' | 'fetch' | 'scope' | 'signal' | 'now'>

/**
 * A block is a row in D1, which a firewall can read, and a call of the webhook if one is set. Both
 * may be repeated: the insertion is idempotent, and the webhook recognises a repetition by its
 * Idempotency-Key. The key includes the row's time: a block after an unblock is a new one.
 */
export async function addBlock({ address, reason }: Blocked, { env, fetch, scope, signal, now }: Call): Promise<{ reported: boolean }> {
  const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
  const row = await env.DB.prepare(
    'INSERT INTO blocks (scope, address, reason, blocked_at, id) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET reason = reason RETURNING blocked_at',
  )
    .bind(scope, address, reason, now(), crypto.randomUUID())
    .first<{ blocked_at: number }>()
  const key = `${scope} block:${address} ${row?.blocked_at}`
  if (webhook) await tellWebhook(webhook, { scope, address, reason }, { fetch, signal, key })
  return { reported: webhook !== null }
}

/**
 * The webhook is called before the row is deleted: after a crash in between, the retry finds the
 * row and calls it again with the same key. Returns null if there is no such block.
 */
export async function liftBlock(address: string, { env, fetch, scope, signal }: Omit<Call, 'now'>): Promise<{ reported: boolean } | null> {
  const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
  const row = await env.DB.prepare('SELECT blocked_at FROM blocks WHERE scope = ? AND address = ?')
    .bind(scope, address)
    .first<{ blocked_at: number }>()
  if (!row) return null
  const key = `${scope} unblock:${address} ${row.blocked_at}`
  if (webhook) await tellWebhook(webhook, { scope, address, unblock: true }, { fetch, signal, key })
  await env.DB.prepare('DELETE FROM blocks WHERE scope = ? AND address = ?').bind(scope, address).run()
  return { reported: webhook !== null }
}
