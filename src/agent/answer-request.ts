import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
} from '@ai-sdk/provider'
import { messageOf } from '../base/error-text.ts'
import { isTooDeep, jsonValue } from '../base/json.ts'
import { CALLER_TOOL, isModelAsked } from '../contract/model-asked.ts'
import type { ModelRequest, RequestParts } from '../contract/model-request.ts'
import type { Event } from '../core/event.ts'
import { StreamContent } from '../models/stream-content.ts'
import { handedArguments } from '../tools/caller-tools.ts'
import type { Agent, AgentDeps } from './define-agent.ts'

/**
 * `said` gets text as it is made, `called` a call once it may leave, and `untold` a call that was
 * refused while others of the same answer have left.
 */
export type AnswerSink = {
  streams: boolean
  said: (delta: string) => void
  called: (call: LanguageModelV4ToolCall) => void
  untold?: (call: RefusedCall) => void
}
export type RefusedCall = { id: string; name: string; input: string; reason: string }
export type AnswerEnd = { finish: string; calls: number }

type AnsweringDeps = Pick<AgentDeps, 'model' | 'signal' | 'reply' | 'call'>
const QUIET: AnswerSink = { streams: false, said: () => {}, called: () => {} }
/** Rounds in which a model hears of refusals before the request ends. */
const MOST_REFUSALS = 4

function requestFrom(hash: string, part: (hash: string) => unknown): ModelRequest {
  const { prompt, tools, options } = part(hash) as RequestParts
  const known = part(tools) as { tools: LanguageModelV4FunctionTool[] }
  return { prompt: prompt.map((message) => part(message)) as LanguageModelV4Prompt, tools: known.tools, options }
}

/** The trigger for these events: one of its own for a request to a model, whatever the agent. */
export function triggerOn(
  { trigger }: Pick<Agent, 'trigger'>,
  events: readonly Event[],
  part: (hash: string) => unknown,
): Agent['trigger'] {
  const [asked] = events
  if (!asked || !isModelAsked(asked)) return trigger
  return (_context, deps) => answerRequest(requestFrom(asked.request_hash, part), deps)
}

/**
 * Asks the model and hands the calls that it makes over to the caller. A call that is refused is
 * answered to the model as a refusal, and the model is asked again; if others leave, the request
 * that brings their outputs tells it.
 */
export async function answerRequest({ prompt, tools, options }: ModelRequest, deps: AnsweringDeps, sink = QUIET): Promise<AnswerEnd> {
  let messages = prompt
  const paragraphs = paragraphsOf(sink)
  for (let round = 0; ; round += 1) {
    paragraphs.next()
    const asked = { ...options, prompt: messages, ...(tools.length > 0 && { tools }), abortSignal: deps.signal }
    const { content, finish } = await answerOf(deps, asked, { streams: sink.streams, said: paragraphs.said })
    const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
    if (text !== '') deps.reply(text)
    const calls = content.filter((part) => part.type === 'tool-call')
    const refused: RefusedCall[] = []
    for (const call of calls) {
      const reason = await refusalOf(call, deps)
      if (reason === null) sink.called({ ...call, input: handedArguments(call.input) })
      else refused.push({ id: call.toolCallId, name: call.toolName, input: call.input, reason })
    }
    const made = calls.length - refused.length
    if (refused.length === 0 || made > 0) {
      for (const call of refused) sink.untold?.(call)
      return { finish: made > 0 ? 'tool-calls' : finish, calls: made }
    }
    if (round === MOST_REFUSALS) {
      const said = refused.map(({ name, reason }) => `The call of ${name} was refused: ${reason}`).join('\n')
      paragraphs.next()
      paragraphs.said(said)
      deps.reply(said)
      return { finish: 'stop', calls: 0 }
    }
    messages = messages.concat(toldOf(content, refused))
  }
}

/** Joins the texts of several answers of a model as paragraphs of one. */
function paragraphsOf(sink: AnswerSink) {
  let has_said = false
  let is_next = false
  return {
    next: (): void => {
      is_next = has_said
    },
    said: (text: string): void => {
      if (text === '') return
      sink.said(is_next ? `\n\n${text}` : text)
      has_said = true
      is_next = false
    },
  }
}

/** Null if the call was handed over, else the reason why not. */
async function refusalOf({ toolName, input }: LanguageModelV4ToolCall, deps: AnsweringDeps): Promise<string | null> {
  try {
    await deps.call(CALLER_TOOL + toolName, input === '' ? {} : (jsonValue(input) ?? input))
    return null
  } catch (error) {
    deps.signal.throwIfAborted()
    return messageOf(error)
  }
}

async function answerOf(
  { model }: AnsweringDeps,
  options: LanguageModelV4CallOptions,
  sink: Pick<AnswerSink, 'streams' | 'said'>,
): Promise<{ content: LanguageModelV4Content[]; finish: string }> {
  if (!sink.streams) {
    const { content, finishReason } = await model.doGenerate(options)
    for (const part of content) if (part.type === 'text') sink.said(part.text)
    return { content, finish: finishReason.unified }
  }
  const { stream } = await model.doStream(options)
  const content = new StreamContent()
  let finish = 'other'
  // workerd's streams are iterable; the types of the AI SDK do not say so.
  for await (const part of stream as unknown as AsyncIterable<LanguageModelV4StreamPart>) {
    content.add(part)
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') sink.said(part.delta)
    if (part.type === 'finish') finish = part.finishReason.unified
  }
  return { content: content.parts, finish }
}

type AnswerPart = Extract<LanguageModelV4Prompt[number], { role: 'assistant' }>['content'][number]

/** The answer with its calls, and a refusal of each. */
function toldOf(content: readonly LanguageModelV4Content[], refused: readonly RefusedCall[]): LanguageModelV4Prompt {
  const said = content.flatMap((part): AnswerPart[] =>
    part.type === 'text' && part.text !== '' ? [{ type: 'text', text: part.text }] : [],
  )
  const { calls, results } = refusalsOf(refused)
  return [
    { role: 'assistant', content: [...said, ...calls] },
    { role: 'tool', content: results },
  ]
}

/** The input of a refused call. One that is too deep was refused for it, and no prompt holds it. */
function repeatable(input: string): unknown {
  const value = jsonValue(input)
  return isTooDeep(value) ? {} : (value ?? {})
}

/** Refused calls, and what the model hears of them, as parts of a prompt. */
export const refusalsOf = (refused: readonly RefusedCall[]) => ({
  calls: refused.map(({ id: toolCallId, name: toolName, input }) => ({
    type: 'tool-call' as const,
    toolCallId,
    toolName,
    input: repeatable(input),
  })),
  results: refused.map(({ id: toolCallId, name: toolName, reason }) => ({
    type: 'tool-result' as const,
    toolCallId,
    toolName,
    output: { type: 'error-text' as const, value: `The call was not made: ${reason}` },
  })),
})
