import type { BaseMessage } from '@langchain/core/messages'
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import { BaseChatModel, type BaseChatModelParams, type BindToolsInput } from '@langchain/core/language_models/chat_models'
import { AIMessage, AIMessageChunk } from '@langchain/core/messages'
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs'
import { tool } from '@langchain/core/tools'
import { z } from 'zod'
import type { ReflexConfig } from '../../../../src/standalone/config.ts'
import type { Reflex } from '../../../../src/standalone/index.ts'
import { wrapLangChain, type SkillChatModel } from '../../../../src/standalone/langchain/index.ts'
import { world } from '../fixtures.ts'

export type Answer = AIMessage | AIMessageChunk | string | Error

// LangChain's types infer `undefined` for a usage under `exactOptionalPropertyTypes`.
const USAGE = { input_tokens: 10, output_tokens: 3, total_tokens: 13 } as never

/**
 * A chat model of LangChain that gives these answers, one a call, and streams them in small pieces.
 */
export class ScriptedChatModel extends BaseChatModel {
  readonly #answers: Answer[]
  readonly piece: number
  /**
   * The options by which it asks its provider for structured output, instead of LangChain's own
   * way.
   */
  structured: object | null = null
  readonly calls: { messages: BaseMessage[]; options: Record<string, unknown> }[] = []

  constructor(answers: Answer[], { piece = 7, ...params }: BaseChatModelParams & { piece?: number } = {}) {
    super(params)
    this.#answers = [...answers]
    this.piece = piece
  }

  /** The prompts as text. */
  get prompts(): string[] {
    return this.calls.map(({ messages }) => messages.map(({ text }) => text).join('\n'))
  }

  override _llmType(): string {
    return 'scripted'
  }

  override bindTools(tools: BindToolsInput[], kwargs: object = {}) {
    return this.withConfig({ tools, ...kwargs } as object)
  }

  override async _generate(messages: BaseMessage[], options: this['ParsedCallOptions']): Promise<ChatResult> {
    const message = this.#next(messages, options)
    return { generations: [{ text: message.text, message }] }
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const answer = this.#next(messages, options)
    for (const [index, message] of piecesOf(answer, this.piece).entries()) {
      message.id = `answer-${this.calls.length}`
      if (index === 0) message.usage_metadata = USAGE
      const chunk = new ChatGenerationChunk({ message, text: message.text })
      yield chunk
      await runManager?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk })
    }
  }

  #next(messages: BaseMessage[], options: object): AIMessage | AIMessageChunk {
    this.calls.push({ messages, options: options as Record<string, unknown> })
    const answer = this.#answers.shift() ?? 'I have no more to say.'
    if (answer instanceof Error) throw answer
    return typeof answer === 'string' ? said(answer) : answer
  }
}

/**
 * On the prototype, where a provider's class has it: an override in the class would need each of
 * the overloads.
 */
ScriptedChatModel.prototype.withStructuredOutput = function (this: ScriptedChatModel, ...args: unknown[]) {
  if (this.structured) return this.withConfig(this.structured) as never
  const [schema, config] = args as Parameters<BaseChatModel['withStructuredOutput']>
  return BaseChatModel.prototype.withStructuredOutput.call(this, schema, config) as never
}

const said = (content: string): AIMessage =>
  new AIMessage({ content, usage_metadata: USAGE, response_metadata: { finish_reason: 'stop', model_name: 'scripted-1' } })

/** The text cut in pieces, then a last one with the rest of the answer, as providers stream. */
function piecesOf({ content, tool_calls = [], response_metadata }: AIMessage | AIMessageChunk, piece: number): AIMessageChunk[] {
  const text = typeof content === 'string' ? content : ''
  const cuts = Array.from({ length: Math.ceil(text.length / piece) }, (_, index) => text.slice(index * piece, (index + 1) * piece))
  const calls = tool_calls.map(({ name, args, id }, index) => ({
    name,
    args: JSON.stringify(args),
    index,
    type: 'tool_call_chunk' as const,
    ...(id ? { id } : {}),
  }))
  const last = { content: typeof content === 'string' ? '' : content, tool_call_chunks: calls, response_metadata }
  return [...cuts.map((cut) => new AIMessageChunk({ content: cut })), new AIMessageChunk(last)]
}

export type Chained = {
  model: ScriptedChatModel
  wrapped: SkillChatModel
  reflex: Reflex
  saved: string[]
  save: ReturnType<typeof saver>
}

const saver = (saved: string[]) =>
  tool(async ({ title }: { title: string }) => ({ id: `n-${saved.push(title)}` }), {
    name: 'notes.save',
    description: 'Saves a note',
    schema: z.object({ title: z.string() }),
  })

/** A chat model with these answers, the same with skills, and the notes that its plans save. */
export function chained(
  answers: Answer[],
  config: Partial<ReflexConfig> = {},
  params: BaseChatModelParams & { piece?: number } = {},
): Chained {
  const saved: string[] = []
  const save = saver(saved)
  const { reflex } = world({ tools: {}, ...config })
  const model = new ScriptedChatModel(answers, params)
  return { model, wrapped: wrapLangChain(reflex, { model, tools: [save] }), reflex, saved, save }
}

/** An answer that calls tools. */
export const calling = (content: string, ...names: string[]): AIMessage =>
  new AIMessage({
    content,
    tool_calls: names.map((name, index) => ({ name, args: {}, id: `c-${index + 1}`, type: 'tool_call' })),
  })
