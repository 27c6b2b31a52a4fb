import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { StringOutputParser } from '@langchain/core/output_parsers'
import { ChatPromptTemplate } from '@langchain/core/prompts'
import { tool } from '@langchain/core/tools'
import { createAgent } from 'langchain'
import { createReflex } from 'reflex-agents/wrap'
import { wrapLangChain, wrapLangGraph } from 'reflex-agents/wrap/langchain'
import { z } from 'zod'

export const saved: string[] = []

const saveNote = tool(({ title }) => ({ id: `note ${saved.push(title)}` }), {
  name: 'notes.save',
  schema: z.object({ title: z.string() }),
})

const reflex = createReflex({
  project: 'acme/notes',
  roles: ['writer'],
  skills: [
    {
      id: 'note.save',
      version: '1.0.0',
      owner: 'team-notes',
      description: 'Saves a note',
      signature: { inputs: [{ name: 'title', type: 'string', required: true }] },
      plan: {
        budget: { max_cost_usd: 0.01, max_latency_ms: 5000 },
        steps: [{ name: 'save', tool: 'notes.save', args: { title: '{{title}}' }, timeout_ms: 1000 }],
      },
      activation: { keywords_any: ['note'], score_weights: { keyword_hit: 1 }, tau: 1 },
      policy: { allow_roles: ['writer'] },
    },
  ],
})

/** A chain in which the chat model with skills replaces the chat model. */
export function noteChain(model: BaseChatModel) {
  const prompt = ChatPromptTemplate.fromMessages<{ title: string }>([['human', 'Save a note: {title}']])
  const skilled = wrapLangChain(reflex, { model, tools: [saveNote] })
  return prompt.pipe(skilled).pipe(new StringOutputParser())
}

/** An agent: any graph that is built from a chat model. */
export function noteAgent(model: BaseChatModel) {
  return wrapLangGraph(reflex, {
    model,
    tools: [saveNote],
    graph: (skilled) => createAgent({ model: skilled, tools: [] }),
  })
}
