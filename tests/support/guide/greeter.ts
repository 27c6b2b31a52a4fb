import { generateText, isStepCount } from 'ai'
import { defineAgent, defineTool, typeFilter } from 'reflex-agents'
import { z } from 'zod'

export const greeter = defineAgent({
  name: 'greeter',
  scopes: ['door/*'],
  filters: [typeFilter('ws.message')],
  tools: {
    open_door: defineTool({
      description: 'Opens a door',
      input: z.object({ door: z.string() }),
      execute: async ({ door }) => ({ opened: door }),
    }),
  },
  async trigger(context, deps) {
    const { text } = await generateText({
      model: deps.model,
      instructions: 'You let people in. Open a door when somebody asks for it, and say so.',
      prompt: context.summarize(),
      tools: deps.tools,
      stopWhen: isStepCount(8), // without it the model gets no step to answer in after a tool call
      abortSignal: deps.signal,
      maxRetries: 0, // a turn that fails is retried as a whole
    })
    if (text !== '') deps.reply(text)
    return { text } // a result removes the events from the context; null keeps them
  },
})
