import type { LanguageModelV4Message, LanguageModelV4Prompt, LanguageModelV4ToolCallPart } from '@ai-sdk/provider'
import { z } from 'zod'
import type { ModelRequest } from '../../../contract/model-request.ts'
import { isJsonFields, isTooDeep, jsonValue } from '../../../base/json.ts'
import type { ProviderApi } from '../../../contract/model-asked.ts'
import type { AnswerLine } from '../contract/answer.ts'

/** A request in any provider's form. `user`: the name of the caller's user, if it gives one. */
export type ParsedRequest = { request: ModelRequest; model: string; streams: boolean; user?: string | undefined }
/** The whole answer. */
export type WholeAnswer = {
  id: string
  model: string
  /** Time in seconds. */
  at: number
  text: string
  calls: readonly { id: string; name: string; input: string }[]
  finish: string
  input_tokens: number
  output_tokens: number
}
export type AnswerFailure = { status: number; message: string; is_budget?: boolean }
/** Writes the lines of an answer as events of the provider. */
export type AnswerWriter = {
  write: (line: Exclude<AnswerLine, { line: 'head' | 'beat' | 'error' }>) => string[]
  failed: (failure: AnswerFailure) => string
}

/** A provider's interface: its requests, answers, streams and errors. */
export type ProviderForm<Body = never> = {
  api: ProviderApi
  body: z.ZodType<Body>
  parse: (body: Body) => ParsedRequest
  whole: (answer: WholeAnswer, body: Body) => object
  writer: (of: Pick<WholeAnswer, 'id' | 'model' | 'at'>, body: Body) => AnswerWriter
  failure: (failure: AnswerFailure) => object
}

export const jsonSchema = z.record(z.string(), z.unknown())
export const namedTool = (toolName: string) => ({ type: 'tool', toolName }) as const

export const withoutNulls = <Fields extends object>(fields: Fields): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as never

/** The words of a content in one of OpenAI's forms. */
export const plain = (given: string | readonly { text?: string | undefined; refusal?: string | undefined }[]): string =>
  typeof given === 'string' ? given : given.map((one) => one.text ?? one.refusal ?? '').join('')

/** A server-sent event. */
export const sse = (data: object, name?: string): string =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`

/** The input of a call as an object; empty for a text that is not one. */
export function inputOf(text: string): Record<string, unknown> {
  const value = valueIn(text)
  return isJsonFields(value) ? value : {}
}

/** The JSON in a text; undefined for other texts, and for a value that is too deep to be kept. */
export function valueIn(text: string): unknown {
  const value = jsonValue(text)
  return isTooDeep(value) ? undefined : value
}

/** Thrown for what an interface takes elsewhere, and this one does not. */
export class NotServed extends Error {
  override readonly name = 'NotServed'
}

/** Refuses a request that sets a field whose meaning would be lost. `refused`: why, by field. */
export function demandServed(given: object, refused: Readonly<Record<string, string>>): void {
  for (const [field, value] of Object.entries(given)) {
    const isSet = value != null && value !== false && value !== 0 && JSON.stringify(value) !== '{}'
    if (isSet && Object.hasOwn(refused, field)) throw new NotServed(`${field} is not served: ${refused[field]}`)
  }
}

type CallPart = LanguageModelV4ToolCallPart
type AssistantMessage = Extract<LanguageModelV4Message, { role: 'assistant' }>

/** The newest call of each id: results repeat neither its name nor its input. */
export class NewestCalls {
  readonly #calls = new Map<string, { call: CallPart; of: AssistantMessage }>()

  static in(prompt: LanguageModelV4Prompt): NewestCalls {
    const calls = new NewestCalls()
    for (const message of prompt) if (message.role === 'assistant') for (const part of message.content) calls.note(part, message)
    return calls
  }

  /** The first call with an id counts in a message. */
  note(part: AssistantMessage['content'][number], of: AssistantMessage): void {
    if (part.type === 'tool-call' && this.#calls.get(part.toolCallId)?.of !== of) this.#calls.set(part.toolCallId, { call: part, of })
  }

  find(id: string): CallPart | undefined {
    return this.#calls.get(id)?.call
  }
}

/** A prompt as it is read. Its time does not grow faster than the prompt, whatever is in it. */
export class GrowingPrompt {
  readonly prompt: LanguageModelV4Prompt = []
  readonly #calls = new NewestCalls()

  add(message: LanguageModelV4Message): void {
    this.prompt.push(message)
  }

  /** Adds to the last message of the assistant, since interfaces split what it did at once. */
  addToAssistant(parts: AssistantMessage['content']): void {
    const last = this.prompt.at(-1)
    const message: AssistantMessage = last?.role === 'assistant' ? last : { role: 'assistant', content: [] }
    // The parts as arguments of one call may be more than the stack holds.
    for (const part of parts) {
      message.content.push(part)
      this.#calls.note(part, message)
    }
    if (message !== last && parts.length > 0) this.add(message)
  }

  /** The results of calls that were made at once are one message. */
  addResult({ id: toolCallId, text: value, failed = false }: { id: string; text: string; failed?: boolean }): void {
    const call = this.#calls.find(toolCallId)
    if (!call) throw new NotServed(`the result of the call ${toolCallId} follows no message with that call`)
    const result = {
      type: 'tool-result' as const,
      toolCallId,
      toolName: call.toolName,
      output: { type: failed ? ('error-text' as const) : ('text' as const), value },
    }
    const last = this.prompt.at(-1)
    if (last?.role === 'tool') last.content.push(result)
    else this.add({ role: 'tool', content: [result] })
  }
}

/** An image or a file, by its address or as data. */
export function filePart(url: string, mediaType: string) {
  const [, media, data] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  if (media !== undefined && data !== undefined) return { type: 'file' as const, mediaType: media, data: { type: 'data' as const, data } }
  const parsed = URL.parse(url)
  if (!parsed) throw new NotServed('the address of a file is no URL')
  return { type: 'file' as const, mediaType, data: { type: 'url' as const, url: parsed } }
}
