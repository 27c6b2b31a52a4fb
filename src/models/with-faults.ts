import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { modelFaultOf } from '../base/faults.ts'
import { ModelFailed } from './model-errors.ts'

type FaultOptions = {
  /** Milliseconds since the epoch. */
  now: () => number
  /** Takes secrets out of the provider's text. */
  hide: (text: string) => string
}

/**
 * The same model, whose failures say whose fault they are: ModelFailed where it is the provider's.
 * A call that its own signal stopped fails with the signal's reason, as before.
 */
export function withFaults(model: LanguageModelV4, options: FaultOptions): LanguageModelV4 {
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ doGenerate, params }) => {
        try {
          return await doGenerate()
        } catch (error) {
          throw failureOf(error, params.abortSignal, options)
        }
      },
      wrapStream: async ({ doStream, params }) => {
        const failure = (error: unknown) => failureOf(error, params.abortSignal, options)
        try {
          const result = await doStream()
          return { ...result, stream: failing(result.stream, failure) }
        } catch (error) {
          throw failure(error)
        }
      },
    },
  })
}

function failureOf(error: unknown, signal: AbortSignal | undefined, { now, hide }: FaultOptions): unknown {
  if (signal?.aborted) return error
  const fault = modelFaultOf(error, { now: now(), asked: true })
  return fault ? new ModelFailed({ ...fault, detail: hide(fault.detail) }, error) : error
}

/** A provider may also break off in the middle of its answer, or say in a part that it does. */
function failing(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  failure: (error: unknown) => unknown,
): ReadableStream<LanguageModelV4StreamPart> {
  const reader = stream.getReader()
  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value.type === 'error' ? { ...value, error: failure(value.error) } : value)
        } catch (error) {
          controller.error(failure(error))
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
