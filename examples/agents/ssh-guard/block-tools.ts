import { z } from 'zod'
import { isPrivateAddress } from './addresses.ts'
import { addBlock, liftBlock } from './blocks.ts'
import { defineTool, type ToolCall } from '../../../src/tools/define-tool.ts'

const address = z.union([z.ipv4(), z.ipv6()])
export const blockInput = z.object({
  address: address.describe('the IPv4 or IPv6 address to block'),
  reason: z.string().trim().min(1).max(500).describe('why, in one sentence'),
})
export const unblockInput = z.object({ address: address.describe('the blocked address') })

/** Blocks an address for a scope. Undoes `unblock`. */
export const blockAddress = defineTool({
  description: 'Blocks an address that attacks, so that it can no longer connect.',
  input: blockInput,
  idempotence_key: ({ address }) => `block:${address}`,
  undoes: { tool: 'unblock', match: ['address'] },
  timeout_ms: 10_000,
  async execute({ address, reason }, call) {
    // Thrown: the journal would repeat a returned refusal after the scope allows the call.
    if (call.parameters['allow_private'] !== true && isPrivateAddress(address))
      throw new Error(`${address} is a private address: it is not blocked`)
    return { blocked: true, address, ...(await addBlock({ address, reason }, call)) }
  },
})

export const unblockAddress = defineTool({
  description: 'Unblocks an address that turned out to be harmless.',
  input: unblockInput,
  idempotence_key: ({ address }) => `unblock:${address}`,
  undoes: { tool: 'block', match: ['address'] },
  timeout_ms: 10_000,
  execute: async ({ address }, call) => ({ address, ...(await lifted(address, call)) }),
})

/** The size that attackers rent; a wider network has too many innocent users. */
const network = z
  .string()
  .regex(/^(?:\d{1,3}\.){3}0\/24$/, 'is an IPv4 network such as 203.0.113.0/24')
  .refine((text) => z.cidrv4().safeParse(text).success, 'is not a network')

const networkInput = z.object({ network, reason: z.string().trim().min(1).max(500) })
const unblockNetworkInput = z.object({ network })

/** Parses `203.0.113.0/24` by its first address. Throws otherwise, so that a policy denies. */
export const isPrivateNetwork = (text: string): boolean => isPrivateAddress(network.parse(text).slice(0, -'/24'.length))

/** Blocks a network. Only a skill's plan may call it, so its policy names the approvers. */
export const blockNetwork = defineTool({
  description: 'Blocks a whole network.',
  input: networkInput,
  plans_only: true,
  idempotence_key: ({ network }) => `block-network:${network}`,
  undoes: { tool: 'unblock_network', match: ['network'] },
  timeout_ms: 10_000,
  async execute({ network, reason }, call) {
    if (isPrivateNetwork(network)) throw new Error(`${network} is a private network: it is not blocked`)
    return { blocked: true, network, ...(await addBlock({ address: network, reason }, call)) }
  },
})

/** Unblocks the network if the rest of the plan fails or an operator lifts the block. */
export const unblockNetwork = defineTool({
  description: 'Unblocks a network.',
  input: unblockNetworkInput,
  plans_only: true,
  idempotence_key: ({ network }) => `unblock-network:${network}`,
  undoes: { tool: 'block_network', match: ['network'] },
  timeout_ms: 10_000,
  execute: async ({ network }, call) => ({ network, ...(await lifted(network, call)) }),
})

async function lifted(address: string, call: ToolCall): Promise<object> {
  const found = await liftBlock(address, call)
  return found ? { unblocked: true, ...found } : { unblocked: false, reason: 'it was not blocked' }
}
