import { tool, type ToolSet } from 'ai'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { hello } from '../../../examples/quickstart.ts'
import { OfflineModel } from '../../../src/models/offline-model.ts'
import { DecisionContext, type AgentDeps } from '../../../src/package.ts'
import { buildEvent } from '../../support/build-event.ts'

/** The answer of the agent's turn to a message with the stand-in, and the inputs of its calls. */
async function turn(content: string) {
  const calls: unknown[] = []
  const remind = tool({
    inputSchema: z.looseObject({}),
    execute: async (input) => (calls.push(input), hello.tools['remind']?.execute(input, {} as never)),
  })
  const deps = { model: new OfflineModel(hello.offline), tools: { remind } satisfies ToolSet, reply: () => {} } as unknown as AgentDeps
  const events = [buildEvent({ type: 'ws.message', connection_id: 'me', content })]
  return { result: await hello.trigger?.(new DecisionContext({ scope: 'chat/me', events }), deps), calls }
}

test('with the stand-in it calls its tool, and says what the tool answered', async () => {
  const { result, calls } = await turn('Remind me of tea')
  expect(calls).toMatchObject([{ text: 'tea' }])
  expect(result).toEqual({ text: expect.stringMatching(/^\[offline model: no model was asked\] The tool remind answered "{.*tea.*}"\.$/) })
})

test('with the stand-in it quotes what was said where nobody asks for a reminder', async () => {
  const { result, calls } = await turn('I am Ada')
  expect(calls).toEqual([])
  expect(result).toEqual({ text: expect.stringContaining('"ws.message: I am Ada"') })
})
