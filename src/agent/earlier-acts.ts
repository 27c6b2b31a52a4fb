import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { jsonValue, type Json } from '../base/json.ts'
import type { EarlierAct } from '../contract/log-entry.ts'
import { shownName } from '../tools/define-tool.ts'

/**
 * A model that sees these acts between the events and its answer. A call of a tool that the model
 * may call is its own call. All else is a note beside the events: a provider refuses calls of tools
 * that are not offered, and an answer that ends the prompt.
 */
export function withEarlierActs(model: LanguageModelV4, acts: readonly EarlierAct[] | undefined): LanguageModelV4 {
  if (!acts || acts.length === 0) return model
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      transformParams: async ({ params }) => ({ ...params, prompt: shown(params, acts) }),
    },
  })
}

type ShownCall = Extract<EarlierAct, { tool: string }> & { toolCallId: string; toolName: string }

function shown({ prompt, tools = [] }: LanguageModelV4CallOptions, acts: readonly EarlierAct[]): LanguageModelV4Prompt {
  const offered = new Set(tools.map(({ name }) => name))
  const calls: ShownCall[] = []
  const noted: string[] = []
  for (const act of acts) {
    const toolName = 'tool' in act ? shownName(act.tool) : ''
    if ('tool' in act && offered.has(toolName)) calls.push({ ...act, toolName, toolCallId: `done-${calls.length}` })
    else noted.push(sentenceOf(act))
  }
  const last = prompt.findLastIndex(({ role }) => role === 'user')
  const at = last < 0 ? prompt.length - 1 : last
  const asked = prompt.slice(0, at + 1)
  return [...(noted.length === 0 ? asked : withNote(asked, noted)), ...messagesOf(calls), ...prompt.slice(at + 1)]
}

function sentenceOf(act: EarlierAct): string {
  if ('said' in act) return `- said ${JSON.stringify(act.said)}`
  if ('sent' in act) return `- sent the event ${JSON.stringify(act.sent)}`
  if ('ran' in act) return `- ran the skill ${act.ran} with ${JSON.stringify(act.inputs)}, which returned ${JSON.stringify(act.outputs)}`
  return `- called ${act.tool} with ${JSON.stringify(act.input)}, which returned ${JSON.stringify(act.output ?? null)}`
}

function withNote(asked: LanguageModelV4Prompt, noted: readonly string[]): LanguageModelV4Prompt {
  const text = `Already done for this, before a later act failed; do not do it again:\n${noted.join('\n')}`
  const last = asked.at(-1)
  if (last?.role !== 'user') return [...asked, { role: 'user', content: [{ type: 'text', text }] }]
  return [...asked.slice(0, -1), { ...last, content: [...last.content, { type: 'text', text }] }]
}

function messagesOf(calls: readonly ShownCall[]): LanguageModelV4Prompt {
  if (calls.length === 0) return []
  return [
    { role: 'assistant', content: calls.map(({ toolCallId, toolName, input }) => ({ type: 'tool-call', toolCallId, toolName, input })) },
    {
      role: 'tool',
      content: calls.map(({ toolCallId, toolName, output }) => ({
        type: 'tool-result',
        toolCallId,
        toolName,
        output: { type: 'json', value: jsonValue(JSON.stringify(output ?? null)) as Json },
      })),
    },
  ]
}
