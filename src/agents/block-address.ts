import { z } from 'zod'
import { defineTool } from './define-tool.ts'
import { isPrivateAddress } from './private-address.ts'

export const blockInput = z.object({
  address: z.union([z.ipv4(), z.ipv6()]).describe('the IPv4 or IPv6 address to block'),
  reason: z.string().trim().min(1).max(500).describe('why, in one sentence'),
})

/**
 * Blocks an address for a scope: a row in D1, from where a firewall can read it, and a call of the webhook where there is one. Both may be repeated: the row
 * is there or not, and the webhook is told by its Idempotency-Key that it is asked again.
 */
export const blockAddress = defineTool({
  description: 'Blocks an address that attacks, so that it can no longer connect.',
  input: blockInput,
  idempotence_key: ({ address }) => `block:${address}`,
  timeout_ms: 10_000,
  async execute({ address, reason }, { env, fetch, scope, signal, idempotence_key, now, parameters }) {
    // Thrown, not returned: the journal answers a repeated call by what it returned, also once the scope allows it.
    if (parameters['allow_private'] !== true && isPrivateAddress(address))
      throw new Error(`${address} is a private address: it is not blocked`)
    const webhook = webhookOf(env.BLOCK_WEBHOOK_URL)
    await env.DB.prepare('INSERT OR IGNORE INTO blocks (scope, address, reason, blocked_at) VALUES (?, ?, ?, ?)')
      .bind(scope, address, reason, now())
      .run()
    if (!webhook) return { blocked: true, address, reported: false }
    const response = await fetch(webhook, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(idempotence_key && { 'idempotency-key': `${scope} ${idempotence_key}` }) },
      body: JSON.stringify({ scope, address, reason }),
      // A redirect could lead out of https.
      redirect: 'manual',
      signal,
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the webhook at ${webhook.host} answered ${response.status}`)
    return { blocked: true, address, reported: true }
  },
})

/** Errors name no more than the host: a webhook's path is often its password. */
function webhookOf(url: string | undefined): URL | null {
  if (!url) return null
  const parsed = URL.parse(url)
  if (!parsed) throw new Error('BLOCK_WEBHOOK_URL is no URL')
  const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(parsed.hostname)
  if (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && loopback)) {
    throw new Error(`BLOCK_WEBHOOK_URL must be https, or http on this machine; it is ${parsed.protocol}//${parsed.host}`)
  }
  return parsed
}
