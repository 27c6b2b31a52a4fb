import { holds } from './condition.ts'
import { defineAgent } from './define-agent.ts'
import { remember, remembered } from './conversation/memory.ts'
import { offlineInstructions } from './offline-instructions.ts'
import { streamAnswer } from './conversation/stream-answer.ts'

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
    const past = remembered(context.scratch, deps.settings.memory).flatMap(({ prompt, reply }) => [
      { role: 'user' as const, content: prompt },
      { role: 'assistant' as const, content: reply },
    ])
    const prompt = context.summarize({ max_events: 50, max_chars: 20_000 })
    const { last: text } = await streamAnswer(deps, { instructions, messages: [...past, { role: 'user', content: prompt }] })
    // A model that spent all its steps on tools has not answered.
    if (text !== '') {
      deps.reply(text)
      remember(context, text, deps.settings)
    }
    return { text }
  },
})
