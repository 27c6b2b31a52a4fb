import { tool, type ToolSet } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { OfflineModel } from '../../../src/models/offline-model.ts'
import { DecisionContext, type AgentDeps } from '../../../src/package.ts'
import { inbox, mailReceived } from '../../../templates/inbox/src/agents/inbox.ts'
import { buildEvent } from '../../support/build-event.ts'

const mail = (id: string, subject: string) =>
  mailReceived.parse({ ...buildEvent({ id }), type: 'mail.received', from: 'ada@example.com', subject, text: 'Please help.' })

test('the inbox of a new project sorts each mail without a model, by words', async () => {
  const calls: unknown[] = []
  const assign = tool({
    inputSchema: z.object({ mail: z.string(), queue: z.string() }),
    execute: async (input) => (calls.push(input), { queue: input.queue }),
  })
  const deps = { model: new OfflineModel(inbox.offline), tools: { assign } satisfies ToolSet } as unknown as AgentDeps
  const events = [mail('mail-1', 'Wrong invoice'), mail('mail-2', 'Where is my parcel?'), mail('mail-3', 'Hello')]
  const result = await inbox.trigger?.(new DecisionContext({ scope: 'inbox/support', events }), deps)
  expect(calls).toEqual([
    { mail: 'mail-1', queue: 'billing' },
    { mail: 'mail-2', queue: 'shipping' },
    { mail: 'mail-3', queue: 'other' },
  ])
  expect(result).toEqual({ text: '[offline model: no model was asked] Sorted 3 of 3.' })
})
