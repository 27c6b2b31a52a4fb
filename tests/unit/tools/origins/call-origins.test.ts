import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Event } from '../../../../src/core/event.ts'
import { defineTool } from '../../../../src/tools/define-tool.ts'
import { callOriginsOf } from '../../../support/call-origins.ts'

const said: Event & { content: string } = {
  id: 'said',
  type: 'chat.message',
  scope: 'mail',
  source: 'boss',
  timestamp: '2026-11-21T05:00:00.000Z',
  content: 'Write to bob@example.com and carol@example.com.',
  meta: { trace_id: 'trace', correlation_id: 'trace', causation_id: null, sender: 'boss' },
}
const input = z.object({ to: z.array(z.email()), subject: z.string() })
const mail = defineTool({ description: 'Sends', input, execute: async () => null })

test('the events of the context are read once for a call, for what is in doubt and for who named the rest', () => {
  let read = 0
  const origins = callOriginsOf({
    events: () => {
      read += 1
      return [said]
    },
    settings: { trusted_senders: ['boss'] },
  })
  const asked = { tool: 'mail.send', definition: mail, cause: { by: 'turn' }, turn_id: 'turn-1' } as const
  const { found, named_by } = origins.judge(asked, { to: ['bob@example.com', 'carol@example.com'], subject: 'bob@example.com' })
  expect(found).toEqual([])
  expect(named_by).toEqual({ to: 'user', subject: 'user' })
  expect(read).toBe(1)
})
