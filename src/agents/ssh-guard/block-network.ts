import { z } from 'zod'
import { addBlock, liftBlock } from './block-row.ts'
import { defineTool } from '../../tools/define-tool.ts'
import { isPrivateAddress } from './private-address.ts'

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
  async execute({ network, reason }, call) {
    if (isPrivateNetwork(network)) throw new Error(`${network} is a private network: it is not blocked`)
    return { blocked: true, network, ...(await addBlock({ address: network, reason }, call)) }
  },
})

/** Frees it again: where the rest of the plan fails, or an operator lifts the block. */
export const unblockNetwork = defineTool({
  description: 'Takes back the block of a network.',
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
