import { generateText } from 'ai'
import { defineAgent, defineTool, typeFilter } from 'reflex-agents'
import { z } from 'zod'

declare module 'reflex-agents' {
  interface Env {
    REFLEX_TOOL_GITHUB?: string
  }
}

/** Answers what people write on the channel. Each thread is a scope of its own. */
export const github = defineAgent({
  name: 'github',
  scopes: ['github/*'],
  filters: [typeFilter('ws.message')],
  tools: {
    github_reply: defineTool({
      description: 'Writes a comment on the issue',
      input: z.object({ text: z.string().max(4000) }),
      async execute({ text }, { env, fetch, signal, scope }) {
        // The scope says where, such as github/acme:2Fshop:7: no text can send it elsewhere.
        const end = scope.lastIndexOf(':')
        const repository = decodeURIComponent(scope.slice('github/'.length, end).replaceAll(':', '%'))
        const headers = { authorization: env.REFLEX_TOOL_GITHUB ?? '', 'content-type': 'application/json', 'user-agent': 'reflex' }
        // The mark keeps the hook from taking the reply for a message.
        const body = JSON.stringify({ body: `<!-- reflex -->\n${text}` })
        const address = `https://api.github.com/repos/${repository}/issues/${scope.slice(end + 1)}/comments`
        const answer = await fetch(address, { method: 'POST', headers, body, signal })
        if (!answer.ok) throw new Error(`GitHub answered ${answer.status}.`)
        return { posted: true }
      },
    }),
  },
  async trigger(context, deps) {
    const said = context.ofType('ws.message').map(({ content }) => content)
    const { text } = await generateText({ model: deps.model, prompt: said.join('\n'), abortSignal: deps.signal, maxRetries: 0 })
    if (text === '') return null
    await deps.call('github_reply', { text })
    return { text }
  },
})
