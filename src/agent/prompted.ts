import { generateText, isStepCount } from 'ai'
import { holds } from './condition.ts'
import { defineAgent } from './define-agent.ts'

/**
 * The agent that settings alone drive: `instructions` is its system prompt, `when` the condition on which it thinks, `tools` what it may use. With no
 * instructions it perceives and never starts a model.
 */
export const prompted = defineAgent({
  name: 'prompted',
  scopes: ['*'],
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
      // A turn that fails is tried again as a whole, with pauses that grow: not three times within itself, too.
      maxRetries: 0,
    })
    // A model that spent all its steps on tools has said nothing.
    if (text !== '') deps.reply(text)
    return { text }
  },
})
