import { generateText } from 'ai'
import { defineAgent, defineTool, typeFilter } from 'reflex-agents'
import { z } from 'zod'

declare module 'reflex-agents' {
  interface Env {
    REFLEX_TOOL_SLACK?: string
  }
}

/** Answers what people write on the channel. Each thread is a scope of its own. */
export const slack = defineAgent({
  name: 'slack',
  scopes: ['slack/*'],
  filters: [typeFilter('ws.message')],
  tools: {
    slack_reply: defineTool({
      description: 'Posts a message to the thread',
      input: z.object({ text: z.string().max(4000) }),
      async execute({ text }, { env, fetch, signal, scope }) {
        // The scope says where it goes: no text of a message can send it elsewhere.
        const [, channel, thread_ts] = scope.split('/')
        const headers = { authorization: env.REFLEX_TOOL_SLACK ?? '', 'content-type': 'application/json' }
        const body = JSON.stringify({ channel, thread_ts, text })
        const response = await fetch('https://slack.com/api/chat.postMessage', { method: 'POST', headers, body, signal })
        const answer: { ok: boolean; error?: string } = await response.json()
        if (!answer.ok) throw new Error(`Slack refused the message: ${answer.error}`)
        return { posted: true }
      },
    }),
  },
  async trigger(context, deps) {
    const said = context.ofType('ws.message').map(({ content }) => content)
    const { text } = await generateText({ model: deps.model, prompt: said.join('\n'), abortSignal: deps.signal, maxRetries: 0 })
    if (text === '') return null
    await deps.call('slack_reply', { text })
    return { text }
  },
})
