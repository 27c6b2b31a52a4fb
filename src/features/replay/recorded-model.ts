import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4GenerateResult } from '@ai-sdk/provider'
import { errorOf } from '../../base/error-text.ts'
import { limits } from '../../base/limits.ts'
import { canonicalJson } from '../../base/json.ts'
import type { EntryOf } from '../../contract/log-entry.ts'
import { requestOf } from '../../models/model-call.ts'
import { streamOf } from '../../models/offline-model.ts'
import { partHash } from '../../traces/ids.ts'
import { Unrecorded, type Comparison } from './report.ts'
import type { Source } from './source.ts'

export type ModelCalled = EntryOf<'model-called'>
/** A changed model, or answers to changed prompts. `ask` is null if nobody may be asked. */
export type Live = {
  name: string | null
  ask: ((options: LanguageModelV4CallOptions) => Promise<LanguageModelV4GenerateResult>) | null
  why: string
  /** Number of prompts without an answer. */
  unanswered: number
}
/** `blocked` says why the turn cannot be followed any further. */
type RecordedModelParts = {
  source: Source
  calls: readonly ModelCalled[]
  comparison: Comparison
  clean: (value: unknown) => unknown
  blocked?: () => string | null
  live?: Live
}

/** Answers each prompt as the model did. A prompt that was not recorded is a divergence. */
export class RecordedModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'recording'
  readonly modelId: string
  readonly supportedUrls = {}
  readonly #parts: RecordedModelParts
  readonly #left: ModelCalled[]
  /** Calls that were made in another form. */
  readonly replaced: ModelCalled[] = []
  /** Why an answer was missing; null if none was. */
  diverged: string | null = null

  constructor(parts: RecordedModelParts) {
    this.#parts = parts
    this.#left = [...parts.calls]
    this.modelId = parts.calls[0]?.model ?? 'unknown'
  }

  get unused(): readonly ModelCalled[] {
    return this.#left
  }

  async doGenerate(options: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const blocked = this.diverged ?? this.#parts.blocked?.()
    if (blocked != null) throw new Unrecorded(blocked)
    const call = this.#find(options)
    if (!call) return this.#askLive(options)
    if (call.status === 'failed') throw errorOf(call.error ?? 'the model failed')
    // A file may have any number: the AI SDK would begin them all at once.
    if ((call.content as { type: string }[]).filter(({ type }) => type === 'tool-call').length > limits.answer_calls) {
      this.diverged = `an answer has more than ${limits.answer_calls} calls of tools, which no scope takes`
      throw new Unrecorded(this.diverged)
    }
    const { usage, model: modelId, prompt_hash: id } = call
    return {
      content: (call.content as { type: string }[]).map(contentOf),
      finishReason: { unified: (call.finish_reason ?? 'stop') as 'stop', raw: undefined },
      usage: {
        inputTokens: { total: usage.input_tokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: usage.output_tokens, text: undefined, reasoning: undefined },
      },
      response: { id, modelId },
      warnings: [],
    }
  }

  async doStream(options: LanguageModelV4CallOptions) {
    return { stream: streamOf(await this.doGenerate(options), options.abortSignal) }
  }

  async #askLive(options: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const live = this.#parts.live ?? { ask: null, why: 'the prompt is not one that was recorded', unanswered: 0 }
    try {
      if (!live.ask) throw new Unrecorded(live.why)
      return await live.ask(options)
    } catch (error) {
      live.unanswered += 1
      this.diverged = error instanceof Error ? error.message : String(error)
      throw new Unrecorded(this.diverged)
    }
  }

  /** The recorded call with this prompt, by the same model. Null if it is missing. */
  #find(options: LanguageModelV4CallOptions): ModelCalled | null {
    const { comparison, live } = this.#parts
    const messages = options.prompt.map((message) => this.#parts.clean(message))
    const hashes = messages.map((message) => partHash(canonicalJson(message)))
    const index = this.#left.findIndex(({ prompt: recorded }) => recorded?.join() === hashes.join())
    const [call] = index === -1 ? [] : this.#left.splice(index, 1)
    const model = live?.name ?? call?.model
    if (call && model === call.model) {
      // A model with other tools might answer otherwise.
      if (this.#compareRequest(call, options) || !live) return call
    } else if (call) comparison.diverge(call, 'model', { path: '/model', recorded: call.model, replayed: model })
    else this.#explain(messages, hashes)
    const replaced = call ?? (live && this.#left.shift())
    if (replaced) this.replaced.push(replaced)
    return null
  }

  /** Older recordings do not have the tools and options. */
  #compareRequest(call: ModelCalled, options: LanguageModelV4CallOptions): boolean {
    const { source, comparison } = this.#parts
    const replayed = this.#parts.clean(requestOf(options))
    if (call.request !== undefined && call.request !== partHash(canonicalJson(replayed)))
      return comparison.compare(call, 'model', { recorded: source.part(call.request), replayed })
    comparison.same(call, 'model')
    return true
  }

  /** Shows the first message that differs from the next recorded prompt. */
  #explain(messages: readonly unknown[], hashes: readonly string[]): void {
    const { source, comparison, calls, live } = this.#parts
    const [next] = this.#left
    const at = next ?? calls.at(-1)
    if (!at && live) return
    if (!at) throw new Unrecorded('a model was asked that was not asked when the turn was recorded')
    const recorded = next?.prompt ?? []
    const first = Array.from({ length: Math.max(recorded.length, hashes.length) }).findIndex(
      (_, index) => recorded[index] !== hashes[index],
    )
    const hash = recorded[first]
    const path = `/prompt/${Math.max(0, first)}`
    const pair = { recorded: hash === undefined ? null : source.part(hash), replayed: messages[first] ?? null }
    comparison.diverge(at, 'model', { path, ...pair })
  }
}

/** The input of a tool call is logged as JSON, so that its secrets can be found. */
function contentOf(part: { type: string }): LanguageModelV4Content {
  const content = 'input' in part && typeof part.input !== 'string' ? { ...part, input: JSON.stringify(part.input) } : part
  return content as LanguageModelV4Content
}
