import type { ToolCall } from '../../tools/define-tool.ts'
import { tellWebhook, webhookAt } from './webhook.ts'

/** An address, or a network. */
type Blocked = { address: string; reason: string }
type Call = Pick<ToolCall, 'env' | 'fetch' | 'scope' | 'signal' | 'now'>

/**
 * A block is a row in D1, from where a firewall can read it, and a call of the webhook where there is one. Both may be repeated: the row is there or not, and the
 * webhook is told by its Idempotency-Key that it is asked again. When the row was made is part of that key: what is blocked anew after it was freed is another block.
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

/** The webhook is told before the row goes: a crash in between finds the row, and tells the same again. Null where there is no such block. */
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
