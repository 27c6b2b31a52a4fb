import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4ToolCall,
} from '@ai-sdk/provider'
import { jsonValue } from '../../base/json.ts'
import { withoutMarks } from '../asp/blocks.ts'
import { bulletinsIn } from '../bulletin/bulletin.ts'
import type { CallReply } from './settle-intents.ts'

const MOST_MESSAGES = 6

/** The users' latest messages, newest first, without any text of models and tools. */
export function userText(prompt: LanguageModelV4Prompt): string {
  return prompt
    .filter((message) => message.role === 'user')
    .slice(-MOST_MESSAGES)
    .toReversed()
    .map(({ content }) => content.map((part) => (part.type === 'text' ? part.text : '')).join('\n'))
    .join('\n')
}

/**
 * Replaces the protocol's marks in all text that does not come from the model: messages, tool
 * results, instructions and tool descriptions. A model would take a forged result for a real one
 * and could repeat a forged proposal. The bulletin is added afterwards.
 */
export function withoutForgeries<Call extends Pick<LanguageModelV4CallOptions, 'prompt' | 'tools'>>(call: Call): Call {
  const prompt = call.prompt.map((message) => (message.role === 'assistant' ? message : withoutMarks(message)))
  return { ...call, prompt, ...(call.tools ? { tools: withoutMarks(call.tools) } : {}) }
}

export function withBulletin(prompt: LanguageModelV4Prompt, bulletin: string): LanguageModelV4Prompt {
  if (bulletin === '') return prompt
  const [first, ...rest] = prompt
  if (first?.role !== 'system') return [{ role: 'system', content: bulletin }, ...prompt]
  return [{ ...first, content: `${first.content}\n\n${bulletin}` }, ...rest]
}

/** A bulletin from another wrapper: the model is wrapped twice. */
export const holdsBulletin = (prompt: LanguageModelV4Prompt): boolean =>
  prompt.some(({ role, content }) => role === 'system' && bulletinsIn(content) > 0)

/** Messages that the caller does not know. `at` is their position, `said` the last user message. */
export type PromptExchange = { at: number; said: string | null; messages: LanguageModelV4Message[] }

export const lastSaid = (prompt: LanguageModelV4Prompt): string | null => prompt.filter(isUser).map(saidIn).at(-1) ?? null

const isUser = ({ role }: LanguageModelV4Message): boolean => role === 'user'

const saidIn = ({ content }: LanguageModelV4Message): string =>
  JSON.stringify(content, (_, value: unknown) => (value instanceof Uint8Array ? `${value.length} bytes` : value))

/**
 * The prompt with the exchanges of earlier calls, never between a tool call and its result.
 * Exchanges over a message that is not in this prompt are omitted.
 */
export function withExchanges(prompt: LanguageModelV4Prompt, exchanges: readonly PromptExchange[]): LanguageModelV4Prompt {
  if (exchanges.length === 0) return prompt
  const sayings = new Set<string | null>([null, ...prompt.filter(isUser).map(saidIn)])
  const left = exchanges.filter(({ said }) => sayings.has(said))
  const whole: LanguageModelV4Message[] = []
  for (const [index, message] of prompt.entries()) {
    while (message.role !== 'tool' && left[0] && left[0].at <= index) whole.push(...(left.shift()?.messages ?? []))
    whole.push(message)
  }
  return [...whole, ...left.flatMap(({ messages }) => messages)]
}

type AssistantContent = Extract<LanguageModelV4Message, { role: 'assistant' }>['content']

/** The answer as part of the next prompt, with only Reflex's own tool calls. */
export function assistantMessages(
  content: readonly LanguageModelV4Content[],
  isOwn: (call: LanguageModelV4ToolCall) => boolean,
): LanguageModelV4Message[] {
  const parts: AssistantContent = []
  for (const part of content) {
    const options = 'providerMetadata' in part && part.providerMetadata ? { providerOptions: part.providerMetadata } : {}
    if (part.type === 'text' || part.type === 'reasoning') parts.push({ type: part.type, text: part.text, ...options })
    if (part.type === 'tool-call' && isOwn(part)) {
      const { toolCallId, toolName, input } = part
      parts.push({ type: 'tool-call', toolCallId, toolName, input: jsonValue(input) ?? {}, ...options })
    }
  }
  return parts.length === 0 ? [] : [{ role: 'assistant', content: parts }]
}

/**
 * The replies as tool results, or else as a user message: some providers refuse a system message.
 */
export function replyMessages(replies: readonly CallReply[], toolNames: ReadonlyMap<string, string>): LanguageModelV4Message[] {
  const results = replies.filter(({ call_id }) => call_id !== null)
  const texts = replies.filter(({ call_id }) => call_id === null).map(({ text }) => text)
  const messages: LanguageModelV4Message[] = []
  if (results.length > 0) {
    messages.push({
      role: 'tool',
      content: results.map(({ call_id, text }) => {
        const toolCallId = call_id ?? ''
        return { type: 'tool-result', toolCallId, toolName: toolNames.get(toolCallId) ?? '', output: { type: 'text', value: text } }
      }),
    })
  }
  if (texts.length > 0) messages.push({ role: 'user', content: [{ type: 'text', text: texts.join('\n') }] })
  return messages
}
