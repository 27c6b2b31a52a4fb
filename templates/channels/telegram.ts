import { generateText } from 'ai'
import { defineAgent, defineTool, typeFilter } from 'reflex-agents'
import { z } from 'zod'

declare module 'reflex-agents' {
  interface Env {
    REFLEX_TOOL_TELEGRAM?: string
  }
}

/** Answers what people write on the channel. Each thread is a scope of its own. */
export const telegram = defineAgent({
  name: 'telegram',
  scopes: ['telegram/*'],
  filters: [typeFilter('ws.message')],
  tools: {
    telegram_reply: defineTool({
      description: 'Sends a message to the chat',
      input: z.object({ text: z.string().max(4000) }),
      async execute({ text }, { env, fetch, signal, scope }) {
        // The scope says where it goes: no text of a message can send it elsewhere.
        const input = { chat_id: scope.slice('telegram/'.length), text }
        const address = `https://api.telegram.org/bot${env.REFLEX_TOOL_TELEGRAM}/sendMessage`
        const headers = { 'content-type': 'application/json' }
        const answer = await fetch(address, { method: 'POST', headers, body: JSON.stringify(input), signal })
        if (!answer.ok) throw new Error(`Telegram answered ${answer.status}.`)
        return { posted: true }
      },
    }),
  },
  async trigger(context, deps) {
    const said = context.ofType('ws.message').map(({ content }) => content)
    const { text } = await generateText({ model: deps.model, prompt: said.join('\n'), abortSignal: deps.signal, maxRetries: 0 })
    if (text === '') return null
    await deps.call('telegram_reply', { text })
    return { text }
  },
})
