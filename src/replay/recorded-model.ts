import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4GenerateResult } from '@ai-sdk/provider'
import { canonicalJson } from '../base/json.ts'
import type { LogEntry } from '../contract/log-entry.ts'
import { streamOf } from '../models/offline-model.ts'
import { partHash } from '../traces/part-hash.ts'
import { Unrecorded, type Comparison } from './report.ts'
import type { Source } from './source.ts'

export type ModelCalled = Extract<LogEntry, { kind: 'model-called' }>
type Parts = { source: Source; calls: readonly ModelCalled[]; comparison: Comparison; clean: (value: unknown) => unknown }

/** Answers each prompt as the model did. A prompt that was not recorded is a divergence. */
export class RecordedModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'recording'
  readonly modelId: string
  readonly supportedUrls = {}
  readonly #parts: Parts
  readonly #left: ModelCalled[]
  /** True once a prompt was not the recorded one. */
  diverged = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#left = [...parts.calls]
    this.modelId = parts.calls[0]?.model ?? 'unknown'
  }

  get unused(): readonly ModelCalled[] {
    return this.#left
  }

  async doGenerate({ prompt }: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    const call = this.#find(prompt)
    if (call.status === 'failed') throw new Error(call.error ?? 'the model failed')
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

  #find(prompt: LanguageModelV4CallOptions['prompt']): ModelCalled {
    const messages = prompt.map((message) => this.#parts.clean(message))
    const hashes = messages.map((message) => partHash(canonicalJson(message)))
    const index = this.#left.findIndex(({ prompt: recorded }) => recorded?.join() === hashes.join())
    const [call] = index === -1 ? [] : this.#left.splice(index, 1)
    if (call) {
      this.#parts.comparison.compared += 1
      return call
    }
    this.diverged = true
    this.#explain(messages, hashes)
    throw new Unrecorded('the prompt is not one that was recorded')
  }

  /** Shows the first message that differs from the next recorded prompt. */
  #explain(messages: readonly unknown[], hashes: readonly string[]): void {
    const { source, comparison, calls } = this.#parts
    const [next] = this.#left
    const at = next ?? calls.at(-1)
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
