import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4GenerateResult } from '@ai-sdk/provider'
import { wrapLanguageModel } from 'ai'
import { ModelTurn, type ModelTurnOptions } from './model-turn.ts'
import { streamRounds } from './model-stream.ts'
import { Rounds, seam, textOf, type RoundEnd } from './rounds.ts'
import { markWrapped, refuseWrapped } from './wrapped.ts'

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
