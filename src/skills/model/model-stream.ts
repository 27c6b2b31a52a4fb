import type { LanguageModelV4, LanguageModelV4StreamPart, LanguageModelV4StreamResult } from '@ai-sdk/provider'
import { RoundStream, type FinishPart } from './round-stream.ts'
import type { Rounds } from './rounds.ts'

/** All rounds as one stream. A reader that leaves aborts `left`, which ends the rounds. */
export async function streamRounds(model: LanguageModelV4, rounds: Rounds, left: AbortController): Promise<LanguageModelV4StreamResult> {
  return rounds.call.attempt(async () => {
    const first = await model.doStream(rounds.next())
    return { ...first, stream: streamOf(rounds.call.watched(allParts({ model, rounds, first: first.stream })), left) }
  })
}

type Streaming = { model: LanguageModelV4; rounds: Rounds; first: ReadableStream<LanguageModelV4StreamPart> }

async function* allParts({ model, rounds, first }: Streaming): AsyncGenerator<LanguageModelV4StreamPart> {
  let stream = first
  let said = ''
  for (let round = 1; ; round++) {
    const current = new RoundStream(rounds, { round, said })
    for await (const part of stream) yield* current.pass(part)
    const finish = current.finish
    // Without a finish part the answer is incomplete, and its blocks are ignored.
    if (!finish) return yield* current.rest(rounds.broken(current.content))
    const reason = current.failed ? { ...finish.finishReason, unified: 'error' as const } : finish.finishReason
    const end = await rounds.ended({ content: current.content, finish: reason, usage: finish.usage })
    yield* current.rest(end)
    if (!end.again) return yield finished(finish, { rounds, unified: end.finish })
    said = current.said
    stream = (await model.doStream(rounds.next())).stream
  }
}

function finished(
  { providerMetadata, ...finish }: FinishPart,
  { rounds, unified }: { rounds: Rounds; unified: FinishPart['finishReason'] },
): FinishPart {
  return { ...finish, finishReason: unified, usage: rounds.usage, ...rounds.metadata(providerMetadata) }
}

function streamOf<Part>(parts: AsyncGenerator<Part>, left: AbortController): ReadableStream<Part> {
  return new ReadableStream<Part>(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          controller.error(error)
        }
      },
      cancel(reason) {
        left.abort(reason)
        // Not awaited: a model that ignores the signal would block the reader.
        parts.return(undefined).catch(() => null)
      },
    },
    { highWaterMark: 0 },
  )
}
