import { AIMessage, AIMessageChunk, type BaseMessage, SystemMessage, type UsageMetadata } from '@langchain/core/messages'
import { withoutMarks } from '../../skills/asp/blocks.ts'
import type { WrappedAnswer } from '../../agent/wrapped.ts'
import { isJsonFields } from '../../base/json.ts'
import { costOf } from '../../models/model-call.ts'
import { partHash } from '../../traces/ids.ts'
import type { LoggedCall } from '../turn.ts'

export type Reply = AIMessage | AIMessageChunk
export type Content = BaseMessage['content']

export const isUser = (message: BaseMessage): boolean => message.getType() === 'human'
const isAssistant = (message: BaseMessage): boolean => message.getType() === 'ai'
export const isSystem = (message: BaseMessage): boolean => message.getType() === 'system'

const MOST_MESSAGES = 6

export const userTextOf = (messages: readonly BaseMessage[]): string =>
  messages
    .filter(isUser)
    .slice(-MOST_MESSAGES)
    .toReversed()
    .map(({ text }) => text)
    .join('\n')

/** Appends text to the system prompt. Its other parts, such as cache marks, are kept. */
export function withSystemText(messages: readonly BaseMessage[], text: string): BaseMessage[] {
  if (text === '') return [...messages]
  const [first, ...rest] = messages
  if (!first || !isSystem(first)) return [new SystemMessage(text), ...messages]
  const { content } = first
  const longer = typeof content === 'string' ? `${content}\n\n${text}` : [...content, { type: 'text', text }]
  return [withContent(first, longer), ...rest]
}

/** Replaces the protocol's marks in all messages but the assistant's. */
export const withoutForgeries = (messages: readonly BaseMessage[]): BaseMessage[] =>
  messages.map((message) => {
    if (isAssistant(message)) return message
    const plain = withoutMarks(message.content)
    return plain === message.content ? message : withContent(message, plain)
  })

/** A copy of the same class. Providers read fields beside the content, so that all of them stay. */
function withContent(message: BaseMessage, content: Content): BaseMessage {
  const properties = Object.getOwnPropertyDescriptors(message)
  const copy = Object.create(Object.getPrototypeOf(message) as object, properties) as BaseMessage
  copy.content = content
  copy.lc_kwargs = { ...message.lc_kwargs, content }
  return copy
}

type MessageChanges = { content?: Content; response_metadata?: Record<string, unknown>; usage_metadata?: UsageMetadata | undefined }

/** The answer with these changes, of the same class; its tool calls and ids stay. */
export function changed<Kind extends Reply>(reply: Kind, changes: MessageChanges): Kind {
  return (AIMessageChunk.isInstance(reply) ? new AIMessageChunk(fieldsOf(reply, changes)) : new AIMessage(fieldsOf(reply, changes))) as Kind
}

/** A whole answer as the only piece of a stream. */
export const chunkOf = (reply: Reply): AIMessageChunk =>
  AIMessageChunk.isInstance(reply) ? reply : new AIMessageChunk(fieldsOf(reply, {}))

function fieldsOf(reply: Reply, changes: MessageChanges) {
  const { content, additional_kwargs, response_metadata, tool_calls, invalid_tool_calls, id, name } = reply
  const chunks = 'tool_call_chunks' in reply && reply.tool_call_chunks ? { tool_call_chunks: reply.tool_call_chunks } : {}
  const named = { ...(id === undefined ? {} : { id }), ...(name === undefined ? {} : { name }) }
  const fields = { content, additional_kwargs, response_metadata, usage_metadata: usageOf(reply), ...changes }
  const calls = { tool_calls: tool_calls ?? [], invalid_tool_calls: invalid_tool_calls ?? [], ...chunks }
  // An absent usage is not written: a stream adds usages up.
  const { usage_metadata: usage, ...rest } = fields
  return { ...rest, ...calls, ...named, ...(usage === undefined ? {} : { usage_metadata: usage as never }) }
}

/** LangChain's types infer `undefined` for it under `exactOptionalPropertyTypes`. */
export const usageOf = ({ usage_metadata }: Reply): UsageMetadata | undefined => usage_metadata

/** The content with another text, at the place of its first one; what else is in it stays. */
export function contentWithText(content: Content, text: string): Content {
  if (!Array.isArray(content)) return text
  const at = content.findIndex(isTextPart)
  const parts = content.flatMap((part, index) => {
    if (!isTextPart(part)) return [part]
    return index === at && text !== '' ? [{ ...part, text }] : []
  })
  return at < 0 && text !== '' ? [{ type: 'text', text }, ...parts] : parts
}

/** Moves the indexes of the parts: readers of a stream join parts with equal indexes. */
export const withMovedIndexes = (content: Content, by: number): Content =>
  Array.isArray(content) && by > 0
    ? content.map((part) => ('index' in part && typeof part['index'] === 'number' ? { ...part, index: part['index'] + by } : part))
    : content

/** The highest index plus one of the content's parts. */
export const indexesIn = (content: Content): number =>
  Array.isArray(content)
    ? Math.max(0, ...content.map((part) => ('index' in part && typeof part['index'] === 'number' ? part['index'] + 1 : 0)))
    : 0

export const hasToolCalls = ({ tool_calls }: Reply): boolean => (tool_calls ?? []).length > 0

export const callIds = (message: BaseMessage): string[] => {
  const { tool_calls = [] } = message as { tool_calls?: readonly unknown[] }
  return tool_calls.flatMap((call) => (isJsonFields(call) && typeof call['id'] === 'string' ? [call['id']] : []))
}

const isTextPart = (part: unknown): part is { type: 'text'; text: string } =>
  isJsonFields(part) && part['type'] === 'text' && typeof part['text'] === 'string'

/** A message as JSON, for the log. */
export const storedMessage = (message: BaseMessage): object => message.toDict()

type Called = { prompt: readonly object[]; duration_ms: number }

/** The answer as the log has it. */
export function callOf(reply: Reply, { prompt, duration_ms }: Called): LoggedCall {
  const { input_tokens = 0, output_tokens = 0 } = usageOf(reply) ?? {}
  const { model_name, model: named, finish_reason } = reply.response_metadata as Record<string, unknown>
  const model = textOf(model_name) ?? textOf(named) ?? 'unknown'
  return {
    model,
    status: 'ok',
    input_tokens,
    output_tokens,
    cost_usd: costOf(model, { input_tokens, output_tokens }),
    duration_ms,
    prompt_hash: partHash(JSON.stringify(prompt)),
    finish_reason: (textOf(finish_reason) ?? null) as LoggedCall['finish_reason'],
    content: contentOf(reply, reply.text),
    error: null,
  }
}

/** The answer as the caller gets it, with this text. */
export const answerOf = (reply: Reply, text: string): WrappedAnswer => ({
  content: contentOf(reply, text),
  finish_reason: null,
  error: null,
})

const contentOf = ({ tool_calls = [] }: Reply, text: string): object[] => [
  { type: 'text', text },
  ...tool_calls.map(({ id, name, args }) => ({ type: 'tool-call', toolCallId: id, toolName: name, input: args })),
]

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
