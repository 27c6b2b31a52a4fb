import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { ModelTurn, type ModelTurnOptions } from './model-turn.ts'
import { Rounds, seam, textOf, type RoundEnd } from './rounds.ts'
import { markWrapped, refuseWrapped } from './wrapped.ts'
import { StreamContent } from '../../models/stream-content.ts'
import { HeldText } from './held-text.ts'

type FinishPart = Extract<LanguageModelV4StreamPart, { type: 'finish' }>
type TextStart = Extract<LanguageModelV4StreamPart, { type: 'text-start' }>
type TextDelta = Extract<LanguageModelV4StreamPart, { type: 'text-delta' }>
type TextEnd = Extract<LanguageModelV4StreamPart, { type: 'text-end' }>

/**
 * Streams one round to the caller: text as far as it may pass, without the protocol's own parts.
 */
class RoundStream {
  finish: FinishPart | null = null
  /** The stream reported an error: blocks of this answer are ignored. */
  failed = false
  readonly #rounds: Rounds
  readonly #round: number
  readonly #parts = new StreamContent()
  readonly #held = new HeldText()
  /** Ids of texts whose start was passed on, and of native calls that were not. */
  readonly #begun = new Set<string>()
  readonly #starts = new Map<string, TextStart>()
  readonly #own = new Set<string>()
  readonly #before: string
  #said: string

  constructor(rounds: Rounds, { round, said }: { round: number; said: string }) {
    this.#rounds = rounds
    this.#round = round
    this.#before = said
    this.#said = said
  }

  get content(): LanguageModelV4Content[] {
    return this.#parts.parts
  }

  get said(): string {
    return this.#said
  }

  *pass(part: LanguageModelV4StreamPart): Generator<LanguageModelV4StreamPart> {
    this.#parts.add(part)
    if (part.type === 'text-start') this.#starts.set(part.id, part)
    else if (part.type === 'text-delta') yield* this.#delta(part, this.#rounds.readsText ? this.#held.push(part.delta) : part.delta)
    else if (part.type === 'text-end') yield* this.#end(part)
    else if (part.type === 'finish') this.finish = part
    else if (part.type === 'error') yield* this.#fail(part)
    else if (part.type === 'stream-start' || part.type === 'response-metadata') yield* this.#round === 1 ? [part] : []
    else if (!this.#isOwn(part)) yield this.#renamed(part)
  }

  /** The held text that turned out to be visible, and the text that replaces the rest. */
  *rest({ visible, cut_at }: Pick<RoundEnd, 'visible' | 'cut_at'>): Generator<LanguageModelV4StreamPart> {
    const text = visible.slice(this.#rounds.readsText ? this.#held.passed : cut_at)
    if (text === '') return
    const id = `reflex-${this.#round}`
    yield { type: 'text-start', id }
    yield { type: 'text-delta', id, delta: this.#spoken(text) }
    yield { type: 'text-end', id }
  }

  *#delta(part: TextDelta, text: string): Generator<LanguageModelV4StreamPart> {
    if (text === '') return
    const id = this.#idOf(part.id)
    if (!this.#begun.has(part.id)) {
      this.#begun.add(part.id)
      yield { ...(this.#starts.get(part.id) ?? { type: 'text-start' as const }), id }
    }
    yield { ...part, id, delta: this.#spoken(text) }
  }

  *#end(part: TextEnd): Generator<LanguageModelV4StreamPart> {
    if (this.#begun.delete(part.id)) yield { ...part, id: this.#idOf(part.id) }
  }

  *#fail(part: LanguageModelV4StreamPart): Generator<LanguageModelV4StreamPart> {
    this.failed = true
    yield part
  }

  #spoken(text: string): string {
    const spoken = this.#said === this.#before ? seam(this.#before, text) + text : text
    this.#said += spoken
    return spoken
  }

  #isOwn(part: LanguageModelV4StreamPart): boolean {
    if (part.type === 'tool-call') return this.#rounds.isOwn(part)
    if (part.type === 'tool-input-start' && this.#rounds.isOwn(part)) this.#own.add(part.id)
    return (
      (part.type === 'tool-input-start' || part.type === 'tool-input-delta' || part.type === 'tool-input-end') && this.#own.has(part.id)
    )
  }

  #renamed(part: LanguageModelV4StreamPart): LanguageModelV4StreamPart {
    const isReasoning = part.type === 'reasoning-start' || part.type === 'reasoning-delta' || part.type === 'reasoning-end'
    return isReasoning ? { ...part, id: this.#idOf(part.id) } : part
  }

  /** The model numbers its parts from the start in each round. */
  #idOf(id: string): string {
    return this.#round === 1 ? id : `${this.#round}:${id}`
  }
}

/** All rounds as one stream. A reader that leaves aborts `left`, which ends the rounds. */
async function streamRounds(model: LanguageModelV4, rounds: Rounds, left: AbortController): Promise<LanguageModelV4StreamResult> {
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

type TurnOf = (params: LanguageModelV4CallOptions) => ModelTurn | Promise<ModelTurn>

export function modelForSession(model: LanguageModelV4, options: ModelTurnOptions): LanguageModelV4 {
  const turn = new ModelTurn(options)
  return modelForTurns(model, () => turn)
}

/**
 * The same model with skills: it gets the bulletin once per turn, its proposals are decided and
 * run, and it continues with the results. The answer contains no blocks; `providerMetadata.reflex`
 * reports the proposals.
 */
export function modelForTurns(model: LanguageModelV4, turnOf: TurnOf): LanguageModelV4 {
  refuseWrapped(model, 'the model')
  const wrapped = wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ params }) => {
        const rounds = new Rounds(await turnOf(params), params)
        return rounds.call.attempt(() => allRounds(model, rounds))
      },
      wrapStream: async ({ params }) => {
        const left = new AbortController()
        const abortSignal = params.abortSignal ? AbortSignal.any([params.abortSignal, left.signal]) : left.signal
        return streamRounds(model, new Rounds(await turnOf(params), { ...params, abortSignal }), left)
      },
    },
  })
  return markWrapped(wrapped)
}

async function allRounds(model: LanguageModelV4, rounds: Rounds): Promise<LanguageModelV4GenerateResult> {
  const content: LanguageModelV4Content[] = []
  const warnings: LanguageModelV4GenerateResult['warnings'] = []
  for (;;) {
    const result = await model.doGenerate(rounds.next())
    const end = await rounds.ended({ content: result.content, finish: result.finishReason, usage: result.usage })
    content.push(...visibleContent(result.content, end, { before: textOf(content), rounds }))
    warnings.push(...result.warnings)
    if (end.again) continue
    return {
      ...result,
      content,
      warnings,
      finishReason: end.finish,
      usage: rounds.usage,
      ...rounds.metadata(result.providerMetadata),
    }
  }
}

/** The parts of a round for the caller: text up to the cut, and no native calls of the protocol. */
function visibleContent(
  content: readonly LanguageModelV4Content[],
  { visible, cut_at }: RoundEnd,
  { before, rounds }: { before: string; rounds: Rounds },
): LanguageModelV4Content[] {
  const parts: LanguageModelV4Content[] = []
  let at = 0
  let said = before
  const say = (part: Extract<LanguageModelV4Content, { type: 'text' }>, text: string): void => {
    if (text === '') return
    parts.push({ ...part, text: seam(said === before ? before : '', text) + text })
    said += text
  }
  for (const part of content) {
    if (part.type === 'text') {
      say(part, part.text.slice(0, Math.max(0, cut_at - at)))
      at += part.text.length
    } else if (part.type !== 'tool-call' || !rounds.isOwn(part)) parts.push(part)
  }
  say({ type: 'text', text: '' }, visible.slice(cut_at))
  return parts
}
