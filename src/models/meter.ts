import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { type ModelCallAnswer, type ModelCall, modelCall } from './model-call.ts'
import { ModelRefused, type ModelRefusal } from './model-errors.ts'
import type { OwnPrices } from './own-prices.ts'
import { promptHash } from './prompt.ts'
import { StreamContent } from './stream-content.ts'
import { watchStream } from './watch-stream.ts'

export type MeterOptions = {
  /** Asked before each call. */
  allow: () => { ok: true } | ModelRefusal
  /** Told of each call once it has ended, failed and aborted ones included; not of refused ones. */
  record: (call: ModelCall, params: LanguageModelV4CallOptions) => void
  now?: () => number
  /** The name to record and to price by; the model's own id unless given. */
  name?: string
  own_prices?: OwnPrices
  /** Ends the call, even if its provider does not listen. */
  signal?: AbortSignal
}

/** Asks before each call and records it. Throws ModelRefused if the call is not allowed. */
export function meter(model: LanguageModelV4, options: MeterOptions): LanguageModelV4 {
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      async wrapGenerate({ doGenerate, params }) {
        const record = await begin(model, options, params)
        const result = await recorded(doGenerate, record, stopOf(params, options))
        record({ content: result.content, usage: result.usage, finish: result.finishReason, taken: true })
        return result
      },
      async wrapStream({ doStream, params }) {
        const record = await begin(model, options, params)
        const stop = stopOf(params, options)
        const result = await recorded(doStream, record, stop)
        return { ...result, stream: recordedStream(result.stream, record, stop) }
      },
    },
  })
}

const stopOf = ({ abortSignal }: LanguageModelV4CallOptions, { signal }: MeterOptions): AbortSignal | undefined =>
  abortSignal && signal ? AbortSignal.any([abortSignal, signal]) : (abortSignal ?? signal)

async function begin(model: LanguageModelV4, options: MeterOptions, params: LanguageModelV4CallOptions) {
  const { prompt } = params
  const { allow, record, now = Date.now, name = model.modelId, own_prices } = options
  const prompt_hash = await promptHash(prompt)
  // Asked last, so that nothing can be spent between the answer and the call.
  const answer = allow()
  if (!answer.ok) throw new ModelRefused(answer)
  const started = now()
  return (answer: ModelCallAnswer) =>
    record(modelCall({ model: name, own_prices, prompt, prompt_hash, duration_ms: now() - started }, answer), params)
}

async function recorded<Result>(
  work: () => PromiseLike<Result>,
  record: (answer: ModelCallAnswer) => void,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work(), stopped.promise])
  } catch (error) {
    record({ content: [], error, taken: signal?.aborted ?? false })
    throw error
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

type Finish = { usage: LanguageModelV4Usage; finishReason: LanguageModelV4FinishReason }

function recordedStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  record: (answer: ModelCallAnswer) => void,
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  const content = new StreamContent()
  let failure: unknown
  let recorded = false
  const settle = (finish: Finish | undefined, error: unknown, cancelled = false) => {
    if (recorded) return
    recorded = true
    const { parts } = content
    record({ content: parts, usage: finish?.usage, finish: finish?.finishReason, error: failure ?? error, taken: true, cancelled })
  }
  return watchStream(stream, {
    signal,
    onPart(part) {
      content.add(part)
      if (part.type === 'error') failure ??= part.error
      // The answer is whole now, whether or not the reader stays for the end.
      if (part.type === 'finish') settle(part, undefined)
    },
    onEnd: (error, cancelled) => settle(undefined, error, cancelled),
  })
}
