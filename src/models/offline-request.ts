import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'

/** A model call as an offline rule sees it. */
export type OfflineRequest = {
  system: string
  /** The last user message's text. */
  text: string
  messages: LanguageModelV4Prompt
  /** Names of the tools that the call offers. */
  tools: string[]
  /** What the last tool call since the last user message answered; absent when there was none. */
  last_tool_result?: { tool: string; output: unknown }
}

export function offlineRequest({ prompt, tools, toolChoice }: LanguageModelV4CallOptions): OfflineRequest {
  const system = prompt.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  const lastUser = prompt.findLastIndex((message) => message.role === 'user')
  const result = prompt
    .slice(lastUser + 1)
    .flatMap(toolResults)
    .at(-1)
  return {
    system: system.join('\n\n'),
    text: userText(prompt[lastUser]),
    messages: prompt,
    tools: toolChoice?.type === 'none' ? [] : (tools ?? []).map((tool) => tool.name),
    ...(result && { last_tool_result: { tool: result.toolName, output: plainOutput(result.output) } }),
  }
}

function userText(message: LanguageModelV4Prompt[number] | undefined): string {
  if (message?.role !== 'user') return ''
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function toolResults(message: LanguageModelV4Prompt[number]): LanguageModelV4ToolResultPart[] {
  return message.role === 'tool' ? message.content.filter((part) => part.type === 'tool-result') : []
}

function plainOutput(output: LanguageModelV4ToolResultOutput): unknown {
  if (output.type === 'error-text' || output.type === 'error-json') return { error: output.value }
  if (output.type === 'execution-denied') return { denied: output.reason ?? true }
  return output.value
}
