import { generateText, isStepCount } from 'ai'
import { holds } from './condition.ts'
import { defineAgent } from './define-agent.ts'
import { offlineInstructions } from './offline-instructions.ts'

/**
 * The agent that settings alone drive: `instructions`, `when` and `tools`. Without instructions it
 * never calls a model.
 */
export const prompted = defineAgent({
  name: 'prompted',
  scopes: ['*'],
  offline: [offlineInstructions],
  async trigger(context, deps) {
    const { instructions, when } = deps.settings
    if (!instructions) return null
    if (when && !holds(when, context)) return null
    const { text } = await generateText({
      model: deps.model,
      instructions,
      prompt: context.summarize({ max_events: 50, max_chars: 20_000 }),
      tools: deps.tools,
      stopWhen: isStepCount(8),
      abortSignal: deps.signal,
      // The turn is retried as a whole; retries within it would multiply.
      maxRetries: 0,
    })
    // A model that spent all its steps on tools has not answered.
    if (text !== '') deps.reply(text)
    return { text }
  },
})
