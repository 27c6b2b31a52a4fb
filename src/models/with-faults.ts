import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { modelFaultOf } from '../base/faults.ts'
import { ModelFailed } from './model-errors.ts'
import { watchStream } from './watch-stream.ts'

type FaultOptions = {
  /** Milliseconds since the epoch. */
  now: () => number
  /** Takes secrets out of the provider's text. */
  hide: (text: string) => string
}

/**
 * The same model, but it fails with ModelFailed where the failure is the provider's fault.
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
          // A provider may also fail in the middle of its answer, or report an error as a part.
          const onPart = (part: LanguageModelV4StreamPart) => (part.type === 'error' ? { ...part, error: failure(part.error) } : part)
          return { ...result, stream: watchStream(result.stream, { onPart, failure }) }
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
