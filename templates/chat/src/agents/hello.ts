import { generateText } from 'ai'
import { defineAgent, typeFilter } from 'reflex-agents'

/** Answers messages in the scopes chat/*. */
export const hello = defineAgent({
  name: 'hello',
  scopes: ['chat/*'],
  filters: [typeFilter('ws.message')],
  async trigger(context, deps) {
    const { text } = await generateText({
      model: deps.model,
      instructions: 'Greet people by their names, in one sentence.',
      prompt: context.summarize(),
      abortSignal: deps.signal,
      maxRetries: 0, // a turn that fails is retried as a whole
    })
    if (text !== '') deps.reply(text)
    return { text } // a result removes the events from the context; null keeps them
  },
})
