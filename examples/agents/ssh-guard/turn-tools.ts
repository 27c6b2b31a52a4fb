import { tool, type ToolSet } from 'ai'
import type { z } from 'zod'
import { blockAddress, blockInput, unblockAddress, unblockInput } from './block-tools.ts'
import type { AgentDeps } from '../../../src/agent/define-agent.ts'
import { isPrivateAddress } from './addresses.ts'

/** Only `attacking` addresses may be blocked, and only `returned` ones unblocked. */
type Listed = { attacking: readonly string[]; returned: readonly string[]; allow_private: boolean }

/** The agent's tools for this turn's addresses only: a hostile user name cannot choose others. */
export function guardTools(deps: AgentDeps, { attacking, returned, allow_private }: Listed) {
  const blocked = new Set<string>()
  const unblocked = new Set<string>()
  const failed = new Map<string, unknown>()
  const refuse = (what: 'blocked' | 'unblocked', reason: string) => ({ [what]: false, reason })
  const call = async (name: 'block' | 'unblock', input: { address: string }, done: Set<string>) => {
    try {
      const answer = await deps.call(name, input)
      failed.delete(input.address)
      done.add(input.address)
      return answer
    } catch (error) {
      failed.set(input.address, error)
      throw error
    }
  }
  const block = async (input: z.infer<typeof blockInput>) => {
    const { address } = input
    if (!attacking.includes(address)) return refuse('blocked', `${address} is not among the listed addresses`)
    if (!allow_private && isPrivateAddress(address)) return refuse('blocked', `${address} is private, and allow_private is not set`)
    return call('block', input, blocked)
  }
  const unblock = async (input: z.infer<typeof unblockInput>) =>
    returned.includes(input.address)
      ? call('unblock', input, unblocked)
      : refuse('unblocked', `${input.address} is not among the blocked addresses that logged in`)
  const tools: ToolSet = {
    ...('block' in deps.tools && { block: tool({ description: blockAddress.description, inputSchema: blockInput, execute: block }) }),
    ...('unblock' in deps.tools &&
      returned.length > 0 && { unblock: tool({ description: unblockAddress.description, inputSchema: unblockInput, execute: unblock }) }),
  }
  return { tools, blocked, unblocked, failed }
}
