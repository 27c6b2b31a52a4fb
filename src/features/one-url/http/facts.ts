import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { createHash } from 'node:crypto'
import type { ModelRequest } from '../../../contract/model-request.ts'
import { canonicalJson, isJsonFields, type Json } from '../../../base/json.ts'
import type { ModelAsked } from '../../../contract/model-asked.ts'
import { traceOfCall, type AskedOfScope } from '../contract/answer.ts'
import { NewestCalls, valueIn } from './form.ts'

const LONGEST_TEXT = 16_000
const MOST_TOOLS = 128

type Facts = Pick<ModelAsked, 'content' | 'tools' | 'called' | 'output' | 'turns' | 'instructions'>
type Message = LanguageModelV4Prompt[number]
type Result = AskedOfScope['results'][number] & { id: string }

/** The facts that a decision on a request may depend on: what is new, and names of the rest. */
export function factsOf({ prompt, tools }: ModelRequest): Facts {
  const last = prompt.findLastIndex(({ role }) => role === 'user')
  const since = prompt.slice(last + 1)
  const results = resultsIn(since, prompt)
  const system = prompt.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  return {
    content: textOf(prompt[last]).slice(0, LONGEST_TEXT),
    tools: tools.slice(0, MOST_TOOLS).map(({ name }) => name),
    called: results.slice(-MOST_TOOLS).map(({ tool }) => tool),
    output: shown(results.at(-1)?.output ?? null),
    turns: prompt.filter(({ role }) => role === 'user').length,
    instructions: lettersOf(canonicalJson([system, tools])),
  }
}

/** All words that direct: of users, and the instructions. */
export const wordsOf = (prompt: LanguageModelV4Prompt): string =>
  prompt
    .flatMap((message) => (message.role === 'system' ? [message.content] : message.role === 'user' ? [textOf(message)] : []))
    .join('\n')
    .slice(-100_000)

/** The outputs of calls since the user's last words, the newest last. */
export function newestResults({ prompt }: ModelRequest): Result[] {
  const last = prompt.findLastIndex(({ role }) => role === 'user')
  const answered = prompt.findLastIndex(({ role }) => role === 'assistant')
  return resultsIn(prompt.slice(Math.max(last, answered) + 1), prompt)
}

/** The trace of the calls that the request answers; null if it answers none of ours. */
export function traceOf(request: ModelRequest): string | null {
  for (const { id } of newestResults(request).toReversed()) {
    const trace_id = traceOfCall(id)
    if (trace_id !== null) return trace_id
  }
  return null
}

function resultsIn(messages: LanguageModelV4Prompt, all: LanguageModelV4Prompt): Result[] {
  const calls = NewestCalls.in(all)
  return messages
    .flatMap((message) => (message.role === 'tool' ? message.content : []))
    .flatMap((part) => {
      if (part.type !== 'tool-result') return []
      const { toolCallId: id, toolName: tool, output } = part
      const value = 'value' in output ? output.value : null
      const known = typeof value === 'string' ? (valueIn(value) ?? value) : value
      return [{ id, tool, input: calls.find(id)?.input ?? {}, output: known }]
    })
}

/** An output that is too long is a text, which is cut. */
function shown(output: unknown): Json {
  const text = typeof output === 'string' ? output : JSON.stringify(output)
  if (typeof output !== 'string' && (isJsonFields(output) || typeof output !== 'object') && text.length <= LONGEST_TEXT)
    return output as Json
  return output === null ? null : text.slice(0, LONGEST_TEXT)
}

const textOf = (message: Message | undefined): string =>
  message?.role === 'user' ? message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n') : ''

/** A short name in letters alone: a digit would count as a number of the request. */
const lettersOf = (text: string): string =>
  Array.from(
    createHash('sha256').update(text).digest().subarray(0, 8),
    (byte) => 'abcdefghijklmnop'.charAt(byte >> 4) + 'abcdefghijklmnop'.charAt(byte & 15),
  ).join('')
