import type { LanguageModelV4, LanguageModelV4Content, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { DEEPEST, isTooDeep, jsonValue } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { watchedBody } from '../base/watched-body.ts'
import { AnswerTooLong } from './model-errors.ts'
import { watchStream } from './watch-stream.ts'

/**
 * Fails an answer with AnswerTooLong once it takes more than a scope can hold or run, however
 * slowly it comes.
 */
export const withLimits = (model: LanguageModelV4): LanguageModelV4 =>
  wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ doGenerate }) => {
        const result = await doGenerate()
        const size = new AnswerSize()
        for (const part of result.content) size.addWhole(part)
        return { ...result, content: result.content.map(shallow) }
      },
      wrapStream: async ({ doStream }) => {
        const result = await doStream()
        const size = new AnswerSize()
        return { ...result, stream: watchStream(result.stream, { onPart: (part) => (size.add(part), shallow(part)) }) }
      },
    },
  })

/**
 * A call whose arguments the AI SDK could not copy has this text in their place. It cannot be
 * parsed as JSON: the call fails with it, and the model hears why.
 */
const TOO_DEEP = `(arguments that are nested more than ${DEEPEST} levels deep)`
const shallow = <Part extends LanguageModelV4Content | LanguageModelV4StreamPart>(part: Part): Part =>
  part.type === 'tool-call' && isTooDeep(jsonValue(part.input)) ? { ...part, input: TOO_DEEP } : part

class AnswerSize {
  #length = 0
  #calls = 0

  add(part: LanguageModelV4StreamPart): void {
    if (part.type === 'text-delta' || part.type === 'reasoning-delta' || part.type === 'tool-input-delta') this.#grow(part.delta)
    if (part.type === 'tool-call') this.#call()
  }

  addWhole(part: LanguageModelV4Content): void {
    if (part.type === 'text' || part.type === 'reasoning') this.#grow(part.text)
    if (part.type !== 'tool-call') return
    this.#grow(part.input)
    this.#call()
  }

  #grow({ length }: string): void {
    this.#length += length
    if (this.#length > limits.answer_length) throw new AnswerTooLong(`${limits.answer_length} characters with its thoughts and calls`)
  }

  #call(): void {
    this.#calls += 1
    if (this.#calls > limits.answer_calls) throw new AnswerTooLong(`${limits.answer_calls} calls of tools`)
  }
}

/**
 * Fetches an answer that the client reads as a whole, or a stream that it reads by lines. Neither a
 * body nor a line may fill the memory.
 */
export const boundedFetch: typeof fetch = async (input, init) => {
  const response = await fetch(input, init)
  const is_stream = /\bevent-stream\b/i.test(response.headers.get('content-type') ?? '')
  let bytes = 0
  return watchedBody(response, (chunk) => {
    const end = is_stream ? chunk.lastIndexOf(NEW_LINE) : -1
    bytes = end < 0 ? bytes + chunk.length : chunk.length - end - 1
    if (bytes > limits.answer_body_bytes) throw new AnswerTooLong(`${limits.answer_body_bytes} bytes`)
  })
}
const NEW_LINE = 10
