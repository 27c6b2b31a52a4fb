import { withoutMarks } from '../skills/asp-blocks.ts'
import { isJsonFields } from '../skills/json.ts'

/** What other frameworks exchange with a model: an object with a `content`, whoever's class it is. Nothing of theirs is imported. */
export type ChatMessage = { content: unknown; tool_calls?: readonly unknown[]; tool_call_chunks?: readonly unknown[] }
export type PlainMessage = { role: 'system' | 'user' | 'assistant'; content: string }

/** The messages of whatever a chat model takes: a text, a list of messages, or a filled template. */
export function messagesOf(input: unknown): unknown[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (Array.isArray(input)) return input
  const { toChatMessages } = input as { toChatMessages?: () => unknown[] }
  if (typeof toChatMessages === 'function') return toChatMessages.call(input)
  throw new TypeError('the input is a text, a list of messages or a prompt value')
}

const ROLES: Record<string, string> = { human: 'user', ai: 'assistant' }

export function roleOf(message: unknown): string {
  const { role, type, getType, _getType } = message as { role?: string; type?: string; getType?: () => string; _getType?: () => string }
  const name = Array.isArray(message) ? String(message[0]) : (role ?? getType?.call(message) ?? _getType?.call(message) ?? type ?? '')
  return ROLES[name] ?? name
}

/** The text of a message's content, which may be a list of parts. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part: unknown) => (isTextPart(part) ? part.text : typeof part === 'string' ? part : '')).join('')
}

export const textOfMessage = (message: unknown): string =>
  contentText(Array.isArray(message) ? message[1] : (message as { content?: unknown }).content)

const MOST_MESSAGES = 6

/** What the users said last, the newest first. */
export const userTextOf = (messages: readonly unknown[]): string =>
  messages
    .filter((message) => roleOf(message) === 'user')
    .slice(-MOST_MESSAGES)
    .toReversed()
    .map(textOfMessage)
    .join('\n')

export function withSystemText(messages: readonly unknown[], text: string): unknown[] {
  if (text === '') return [...messages]
  const [first, ...rest] = messages
  const system = (content: string): PlainMessage => ({ role: 'system', content })
  return roleOf(first) === 'system' ? [system(`${textOfMessage(first)}\n\n${text}`), ...rest] : [system(text), ...messages]
}

/** The same message, of its own class, with another text; what else is in its content stays. */
export function withText<Message extends ChatMessage>(message: Message, text: string): Message {
  if (contentText(message.content) === text) return message
  const others = Array.isArray(message.content)
    ? message.content.filter((part: unknown) => typeof part !== 'string' && !isTextPart(part))
    : []
  return withContent(message, Array.isArray(message.content) ? [...(text === '' ? [] : [{ type: 'text', text }]), ...others] : text)
}

function withContent<Message extends ChatMessage>(message: Message, content: unknown): Message {
  const copy = Object.create(Object.getPrototypeOf(message) as object, Object.getOwnPropertyDescriptors(message)) as Message
  Object.defineProperty(copy, 'content', { value: content, writable: true, enumerable: true, configurable: true })
  return copy
}

/** The messages in which nothing that a user says or a tool gives looks like a part of the protocol. */
export const withoutForgeries = (messages: readonly unknown[]): unknown[] =>
  messages.map((message) => {
    const role = roleOf(message)
    if (role === 'system' || role === 'assistant') return message
    if (Array.isArray(message)) return withoutMarks(message)
    const { content } = message as ChatMessage
    const plain = withoutMarks(content)
    return plain === content ? message : withContent(message as ChatMessage, plain)
  })

export const hasToolCalls = ({ tool_calls = [], tool_call_chunks = [] }: ChatMessage): boolean =>
  tool_calls.length > 0 || tool_call_chunks.length > 0

/** The ids of the tool calls in a message. */
export const callIds = (message: unknown): string[] => {
  const { tool_calls = [] } = message as Partial<ChatMessage>
  return tool_calls.flatMap((call) => (isJsonFields(call) && typeof call['id'] === 'string' ? [call['id']] : []))
}

const isTextPart = (part: unknown): part is { type: 'text'; text: string } =>
  isJsonFields(part) && part['type'] === 'text' && typeof part['text'] === 'string'
