import { z } from 'zod'
import { addBlock, liftBlock } from './block-row.ts'
import { defineTool } from '../../tools/define-tool.ts'
import { isPrivateAddress } from './private-address.ts'

/** The size that attackers rent; a wider network has too many innocent users. */
const network = z
  .string()
  .regex(/^(?:\d{1,3}\.){3}0\/24$/, 'is an IPv4 network such as 203.0.113.0/24')
  .refine((text) => z.cidrv4().safeParse(text).success, 'is no network')

const blockInput = z.object({ network, reason: z.string().trim().min(1).max(500) })
const unblockInput = z.object({ network })

/**
 * Parses `203.0.113.0/24` by its first address. Throws for any other text, so that a policy which
 * calls it denies.
 */
export const isPrivateNetwork = (text: string): boolean => isPrivateAddress(network.parse(text).slice(0, -'/24'.length))

/**
 * Blocks a whole network, as `blockAddress` blocks one address. Only a skill's plan may call it:
 * the skill's policy names who has to approve.
 */
export const blockNetwork = defineTool({
  description: 'Blocks a whole network.',
  input: blockInput,
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
  input: unblockInput,
  plans_only: true,
  idempotence_key: ({ network }) => `unblock-network:${network}`,
  undoes: { tool: 'block_network', match: ['network'] },
  timeout_ms: 10_000,
  async execute({ network }, call) {
    const lifted = await liftBlock(network, call)
    return lifted ? { unblocked: true, network, ...lifted } : { unblocked: false, network, reason: 'it was not blocked' }
  },
})
