import type { LanguageModelV4Prompt, LanguageModelV4Content, LanguageModelV4Message } from '@ai-sdk/provider'
import { estimateTokenCount } from 'tokenx'
import { sha256 } from '../base/json.ts'

/** SHA-256 of the prompt as JSON. A replay uses it to find the recorded response. */
export const promptHash = (prompt: LanguageModelV4Prompt): Promise<string> => sha256(JSON.stringify(prompt))

/** Estimates the tokens if the provider reported none. Files are not counted. */
export function estimatePromptTokens(prompt: LanguageModelV4Prompt): number {
  return estimateTokenCount(prompt.flatMap(messageText).join('\n'))
}

export function estimateContentTokens(content: LanguageModelV4Content[]): number {
  return estimateTokenCount(content.flatMap(partText).join('\n'))
}

function messageText(message: LanguageModelV4Message): string[] {
  return message.role === 'system' ? [message.content] : message.content.flatMap(partText)
}

type Part = Exclude<LanguageModelV4Message, { role: 'system' }>['content'][number] | LanguageModelV4Content

function partText(part: Part): string[] {
  if (part.type === 'text' || part.type === 'reasoning') return [part.text]
  if (part.type === 'tool-call') return [part.toolName, typeof part.input === 'string' ? part.input : JSON.stringify(part.input ?? null)]
  if (part.type === 'tool-result') return [part.toolName, JSON.stringify('output' in part ? part.output : part.result)]
  return []
}
