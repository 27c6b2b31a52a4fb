import type { ModelMessage } from 'ai'
import { z } from 'zod'
import { chatOffline } from './offline.ts'
import { reflexNote } from './reflexes.ts'
import { defineAgent, type AgentDeps } from '../../../src/agent/define-agent.ts'
import { streamAnswer } from '../../../src/agent/conversation/stream-answer.ts'

/** The log has the whole history on every turn, so it is truncated. */
const MOST_MESSAGES = 20
const MOST_CHARS = 600
const MOST_ANSWERED = 100

const instructions =
  'You talk with people in a chat. Answer the last message, in the language that it was written in, briefly and to the point.'

const said = z.object({ role: z.enum(['user', 'assistant']), content: z.string() })
const memory = z.object({ history: z.array(said).default([]), answered: z.array(z.string()).default([]) })

/**
 * Answers each `ws.message` in `chat/*` as a stream to all clients, and remembers the conversation.
 * Repeated questions become reflexes.
 */
export const chat = defineAgent({
  name: 'chat',
  scopes: ['chat/*'],
  filters: [(event) => event.type === 'ws.message' && event.content.trim() !== ''],
  // A turn considers all messages in the context and answers them in order.
  settings: { context_limit: 20, turn_timeout_ms: 300_000 },
  writes_reflexes: true,
  offline: [{ name: 'chat', answer: chatOffline }],

  async trigger(context, deps) {
    const { history, answered } = memory.parse(context.scratch)
    const messages = context.ofType('ws.message').filter(({ id }) => !answered.includes(id))
    if (messages.length === 0) return null
    const replies: string[] = []
    for (const { content } of messages) {
      if (replies.length > 0) deps.stream('\n\n')
      const question: ModelMessage = { role: 'user', content }
      const reply = await answerTo([...history, question], deps)
      replies.push(reply)
      history.push({ role: 'user', content: cut(content) }, { role: 'assistant', content: cut(reply) })
    }
    // Sent at the end: a turn that fails on the second message would repeat the first answer.
    for (const reply of replies) deps.reply(reply)
    context.scratch['history'] = history.slice(-MOST_MESSAGES)
    context.scratch['answered'] = [...answered, ...messages.map(({ id }) => id)].slice(-MOST_ANSWERED)
    return { replies }
  },
})

async function answerTo(messages: ModelMessage[], deps: AgentDeps): Promise<string> {
  const { text } = await streamAnswer(deps, { instructions: (deps.settings.instructions ?? instructions) + reflexNote(deps), messages })
  if (text === '') throw new Error('the model answered nothing')
  return text
}

const cut = (text: string): string => (text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text)
