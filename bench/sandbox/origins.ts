import { z } from 'zod'
import type { Event } from '../../src/core/event.ts'
import { defineTool } from '../../src/tools/define-tool.ts'
import { callOriginsOf } from '../../tests/support/call-origins.ts'
import { blocks } from './timed.ts'

const EVENTS = 1000
const OUTPUTS = 10_000
const shape = z.object({ to: z.email(), cc: z.email(), subject: z.string(), amount: z.number() })
const mail = defineTool({ description: 'Sends', input: shape, execute: async () => null })
const find = defineTool({ description: 'Finds', input: z.object({}), execute: async () => null, repeatable: true })

const said = (nth: number): Event & { content: string } => ({
  id: `said-${nth}`,
  type: 'chat.message',
  scope: 'bench',
  source: 'boss',
  timestamp: '2026-11-21T05:00:00.000Z',
  content: `Order ${nth}: send ${nth} euros to customer${nth}@example.com.`,
  meta: { trace_id: 'bench', correlation_id: 'bench', causation_id: null, sender: 'boss' },
})

/** ms to judge a call whose addresses stand in an output and in the words of a trusted sender. */
export function origins(): number[] {
  const events = Array.from({ length: EVENTS }, (_, nth) => said(nth))
  const call_origins = callOriginsOf({ events: () => events, settings: { trusted_senders: ['boss'], origins: 'ask' } })
  const given = { tool: 'contacts.find', definition: find, input: {} }
  for (let nth = 0; nth < OUTPUTS; nth += 1) call_origins.note(given, { name: `Contact ${nth}`, email: `contact${nth}@example.com` })
  const asked = { tool: 'mail.send', definition: mail, cause: { by: 'turn' }, turn_id: 'turn-1' } as const
  const input = { to: 'contact9000@example.com', cc: 'customer990@example.com', subject: 'The report that you wanted', amount: 990 }
  return blocks(30, 100, () => {
    const { found, named_by } = call_origins.judge(asked, input)
    if (found.length > 0 || named_by['to'] !== 'output:contacts.find.email') throw new Error('the call is judged otherwise')
  })
}
