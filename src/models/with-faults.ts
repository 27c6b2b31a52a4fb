import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { modelFaultOf } from '../base/faults.ts'
import { ModelFailed } from './model-errors.ts'
import { watchStream } from './watch-stream.ts'

type FaultOptions = {
  now: () => number
  /** Takes secrets out of the provider's text. */
  hide: (text: string) => string
}

/** Fails with ModelFailed if it is the provider's fault. An aborted call fails with its reason. */
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
