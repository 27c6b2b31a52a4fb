import { all, defineAgent, defineTool, eventType, typeFilter } from 'reflex-agents'
import { z } from 'zod'

export const logLine = eventType('log.line', { line: z.string().max(2000) })

/** The number of failures from one address that lead to a block. */
const LIMIT = 3

/** The address of a line about a failed login. */
const failedFrom = (line: string): string | null => /^Failed password for .* from (\S+) port \d+/.exec(line)?.[1] ?? null

/** Blocks addresses that guess passwords. It needs no model; a reflex may do the same faster. */
export const guard = defineAgent({
  name: 'guard',
  scopes: ['guard/*'],
  events: [logLine],
  filters: [all(typeFilter('log.line'), ({ line }) => failedFrom(line) !== null)],
  // The address in a line may be blocked, although a stranger caused the line: no person is asked.
  settings: { trusted_text: [{ in: 'log.line', what: ['address'], tools: ['block'] }] },
  tools: {
    block: defineTool({
      description: 'Blocks an address',
      input: z.object({ address: z.ipv4() }),
      idempotence_key: ({ address }) => `block:${address}`,
      // Call your firewall here, with `fetch` of the second argument.
      execute: async ({ address }) => ({ blocked: address }),
    }),
  },
  async trigger(context, deps) {
    const failures = new Map<string, number>()
    for (const { line } of context.ofType('log.line')) {
      const address = failedFrom(line)
      if (address !== null) failures.set(address, (failures.get(address) ?? 0) + 1)
    }
    const guilty = [...failures].filter(([, count]) => count >= LIMIT).map(([address]) => address)
    if (guilty.length === 0) return null // the lines stay in the context, and count next time
    for (const address of guilty) await deps.call('block', { address })
    return { blocked: guilty }
  },
})
