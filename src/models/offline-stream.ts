import type { LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from '@ai-sdk/provider'

const WORDS_A_DELTA = /(?:\S+\s*|\s+){1,3}/g

/** A generated answer as a model would have streamed it, a few words at a time; fails when the signal does. */
export function streamOf(
  result: LanguageModelV4GenerateResult,
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  const parts = streamParts(result)
  return new ReadableStream({
    pull(controller) {
      signal?.throwIfAborted()
      const { done, value } = parts.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}

function* streamParts({
  content,
  warnings,
  response,
  usage,
  finishReason,
}: LanguageModelV4GenerateResult): Generator<LanguageModelV4StreamPart> {
  yield { type: 'stream-start', warnings }
  yield { type: 'response-metadata', ...response }
  for (const [index, part] of content.entries()) {
    if (part.type === 'text') {
      const id = `text-${index}`
      yield { type: 'text-start', id }
      for (const delta of part.text.match(WORDS_A_DELTA) ?? []) yield { type: 'text-delta', id, delta }
      yield { type: 'text-end', id }
    } else if (part.type === 'tool-call') {
      const { toolCallId: id, toolName, input } = part
      yield { type: 'tool-input-start', id, toolName }
      yield { type: 'tool-input-delta', id, delta: input }
      yield { type: 'tool-input-end', id }
      yield part
    }
  }
  yield { type: 'finish', usage, finishReason }
}
