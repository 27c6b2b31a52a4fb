import type { LanguageModelV4, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { jsonValue, type Json } from '../base/json.ts'
import { shownNames } from '../tools/define-tool.ts'

/** A call that a reflex had made for the events of a turn before it failed. */
export type DoneCall = { tool: string; input: unknown; output: unknown }

/** A model that sees these calls as its own: between the events and its answer. */
export function withDoneCalls(model: LanguageModelV4, done: readonly DoneCall[] | undefined): LanguageModelV4 {
  if (!done || done.length === 0) return model
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      transformParams: async ({ params }) => ({ ...params, prompt: shown(params.prompt, done) }),
    },
  })
}

function shown(prompt: LanguageModelV4Prompt, done: readonly DoneCall[]): LanguageModelV4Prompt {
  const at = prompt.findLastIndex(({ role }) => role === 'user') + 1
  const named = done.map((call, index) => ({ ...call, toolCallId: `done-${index}`, toolName: shownNames([call.tool])[0] ?? call.tool }))
  return [
    ...prompt.slice(0, at),
    { role: 'assistant', content: named.map(({ toolCallId, toolName, input }) => ({ type: 'tool-call', toolCallId, toolName, input })) },
    {
      role: 'tool',
      content: named.map(({ toolCallId, toolName, output }) => ({
        type: 'tool-result',
        toolCallId,
        toolName,
        output: { type: 'json', value: jsonValue(JSON.stringify(output ?? null)) as Json },
      })),
    },
    ...prompt.slice(at),
  ]
}
