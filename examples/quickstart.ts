import { generateText, isStepCount } from 'ai'
import { defineAgent, defineTool, typeFilter } from 'reflex-agents'
import { z } from 'zod'

export const hello = defineAgent({
  name: 'hello',
  scopes: ['chat/*'],
  filters: [typeFilter('ws.message')],
  tools: {
    remind: defineTool({
      description: 'Sets a reminder',
      input: z.object({ text: z.string().max(200), at: z.iso.datetime() }),
      idempotence_key: ({ text, at }) => `${at} ${text}`,
      execute: async ({ text, at }) => ({ reminder: text, at }),
    }),
  },
  // The stand-in does this in place of a model. A real model decides by itself.
  offline: [
    {
      name: 'tea in the morning',
      answer: ({ text, last_tool_result }) =>
        last_tool_result || !text.includes('Remind me')
          ? null
          : { tool: { name: 'remind', input: { text: 'tea', at: '2030-01-01T09:00:00Z' } } },
    },
  ],
  async trigger(context, deps) {
    const { text } = await generateText({
      model: deps.model,
      instructions: 'Set a reminder if somebody asks for one, and answer in one sentence.',
      prompt: context.summarize(),
      tools: deps.tools,
      stopWhen: isStepCount(4),
      abortSignal: deps.signal,
      maxRetries: 0,
    })
    if (text !== '') deps.reply(text)
    return { text }
  },
})
