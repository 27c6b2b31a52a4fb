import { z } from 'zod'
import { defineTool } from './define-tool.ts'
import { isPrivateAddress } from './private-address.ts'
import { tellWebhook, webhookAt } from './webhook.ts'

/** The size that attackers rent; a wider one has too many people in it. */
const network = z
  .string()
  .regex(/^(?:\d{1,3}\.){3}0\/24$/, 'is an IPv4 network such as 203.0.113.0/24')
  .refine((text) => z.cidrv4().safeParse(text).success, 'is no network')

const blockInput = z.object({ network, reason: z.string().trim().min(1).max(500) })
const unblockInput = z.object({ network })

/** `203.0.113.0/24` by its first address. Throws where it is no network, so that a policy which asks it denies. */
export const isPrivateNetwork = (text: string): boolean => isPrivateAddress(network.parse(text).slice(0, -'/24'.length))

/** Blocks a whole network, as `blockAddress` does one address. Only a skill's plan may call it: its policy says who has to approve that. */
export const blockNetwork = defineTool({
  description: 'Blocks a whole network.',
  input: blockInput,
  plans_only: true,
  idempotence_key: ({ network }) => `block-network:${network}`,
  undoes: { tool: 'unblock_network', match: ['network'] },
  timeout_ms: 10_000,
  async execute({ network, reason }, { env, fetch, scope, signal, now }) {
    if (isPrivateNetwork(network)) throw new Error(`${network} is a private network: it is not blocked`)
    const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
    const row = await env.DB.prepare(
      'INSERT INTO blocks (scope, address, reason, blocked_at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET reason = reason RETURNING blocked_at',
    )
      .bind(scope, network, reason, now())
      .first<{ blocked_at: number }>()
    const key = `${scope} block:${network} ${row?.blocked_at}`
    if (webhook) await tellWebhook(webhook, { scope, address: network, reason }, { fetch, signal, key })
    return { blocked: true, network, reported: webhook !== null }
  },
})

/** Frees it again: where the rest of the plan fails. */
export const unblockNetwork = defineTool({
  description: 'Takes back the block of a network.',
  input: unblockInput,
  plans_only: true,
  idempotence_key: ({ network }) => `unblock-network:${network}`,
  undoes: { tool: 'block_network', match: ['network'] },
  timeout_ms: 10_000,
  async execute({ network }, { env, fetch, scope, signal }) {
    const webhook = webhookAt('BLOCK_WEBHOOK_URL', env.BLOCK_WEBHOOK_URL)
    const key = `${scope} unblock:${network}`
    if (webhook) await tellWebhook(webhook, { scope, address: network, unblock: true }, { fetch, signal, key })
    await env.DB.prepare('DELETE FROM blocks WHERE scope = ? AND address = ?').bind(scope, network).run()
    return { unblocked: true, network, reported: webhook !== null }
  },
})
