import { z } from 'zod'
import { defineTool } from './define-tool.ts'
import { isPrivateAddress } from './private-address.ts'
import { tellWebhook, webhookAt } from './webhook.ts'

const address = z.union([z.ipv4(), z.ipv6()])
export const blockInput = z.object({
  address: address.describe('the IPv4 or IPv6 address to block'),
  reason: z.string().trim().min(1).max(500).describe('why, in one sentence'),
})
export const unblockInput = z.object({ address: address.describe('the blocked address') })

/**
 * Blocks an address for a scope: a row in D1, from where a firewall can read it, and a call of the webhook where there is one. Both may be repeated: the row
 * is there or not, and the webhook is told by its Idempotency-Key that it is asked again. When the row was made is part of that key: an address that is
 * blocked anew after an `unblock` is another block. It undoes that one in turn, so that the address can be freed a second time.
 */
export const blockAddress = defineTool({
  description: 'Blocks an address that attacks, so that it can no longer connect.',
  input: blockInput,
  idempotence_key: ({ address }) => `block:${address}`,
  undoes: { tool: 'unblock', match: ['address'] },
  timeout_ms: 10_000,
  async execute({ address, reason }, { env, fetch, scope, signal, now, parameters }) {
    // Thrown, not returned: the journal answers a repeated call by what it returned, also once the scope allows it.
    if (parameters['allow_private'] !== true && isPrivateAddress(address))
      throw new Error(`${address} is a private address: it is not blocked`)
    const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
    const row = await env.DB.prepare(
      'INSERT INTO blocks (scope, address, reason, blocked_at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET reason = reason RETURNING blocked_at',
    )
      .bind(scope, address, reason, now())
      .first<{ blocked_at: number }>()
    if (!webhook) return { blocked: true, address, reported: false }
    const key = `${scope} block:${address} ${row?.blocked_at}`
    await tellWebhook(webhook, { scope, address, reason }, { fetch, signal, key })
    return { blocked: true, address, reported: true }
  },
})

/** Frees an address. The webhook is told before the row goes: a crash in between finds the row, and tells the same again. */
export const unblockAddress = defineTool({
  description: 'Takes back the block of an address that turned out to be no attacker’s.',
  input: unblockInput,
  idempotence_key: ({ address }) => `unblock:${address}`,
  undoes: { tool: 'block', match: ['address'] },
  timeout_ms: 10_000,
  async execute({ address }, { env, fetch, scope, signal }) {
    const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
    const row = await env.DB.prepare('SELECT blocked_at FROM blocks WHERE scope = ? AND address = ?')
      .bind(scope, address)
      .first<{ blocked_at: number }>()
    if (!row) return { unblocked: false, address, reason: 'it was not blocked' }
    const key = `${scope} unblock:${address} ${row.blocked_at}`
    if (webhook) await tellWebhook(webhook, { scope, address, unblock: true }, { fetch, signal, key })
    await env.DB.prepare('DELETE FROM blocks WHERE scope = ? AND address = ?').bind(scope, address).run()
    return { unblocked: true, address, reported: webhook !== null }
  },
})
