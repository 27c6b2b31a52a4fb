import { z } from 'zod'
import { addBlock, liftBlock } from './block-row.ts'
import { defineTool } from '../../tools/define-tool.ts'
import { isPrivateAddress } from './private-address.ts'

const address = z.union([z.ipv4(), z.ipv6()])
export const blockInput = z.object({
  address: address.describe('the IPv4 or IPv6 address to block'),
  reason: z.string().trim().min(1).max(500).describe('why, in one sentence'),
})
export const unblockInput = z.object({ address: address.describe('the blocked address') })

/**
 * Blocks an address for a scope. It also undoes `unblock`, so that the address can be freed again.
 */
export const blockAddress = defineTool({
  description: 'Blocks an address that attacks, so that it can no longer connect.',
  input: blockInput,
  idempotence_key: ({ address }) => `block:${address}`,
  undoes: { tool: 'unblock', match: ['address'] },
  timeout_ms: 10_000,
  async execute({ address, reason }, call) {
    // Thrown, not returned: the journal would repeat a returned refusal even after the scope allows
    // the call.
    if (call.parameters['allow_private'] !== true && isPrivateAddress(address))
      throw new Error(`${address} is a private address: it is not blocked`)
    return { blocked: true, address, ...(await addBlock({ address, reason }, call)) }
  },
})

/** Unblocks an address. */
export const unblockAddress = defineTool({
  description: 'Unblocks an address that turned out to be harmless.',
  input: unblockInput,
  idempotence_key: ({ address }) => `unblock:${address}`,
  undoes: { tool: 'block', match: ['address'] },
  timeout_ms: 10_000,
  async execute({ address }, call) {
    const lifted = await liftBlock(address, call)
    return lifted ? { unblocked: true, address, ...lifted } : { unblocked: false, address, reason: 'it was not blocked' }
  },
})
