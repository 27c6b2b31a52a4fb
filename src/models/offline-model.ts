import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamResult,
  LanguageModelV4Text,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
} from '@ai-sdk/provider'
import { offlineRequest } from './offline-request.ts'
import { answerOffline, answerOfflineAsJson, type OfflineAnswer, type OfflineRule } from './offline-rules.ts'
import { streamOf } from './offline-stream.ts'
import { promptHash } from './prompt-hash.ts'
import { estimateContentTokens, estimatePromptTokens } from './token-estimate.ts'

export { OFFLINE_PREFIX, type OfflineAnswer, type OfflineRule } from './offline-rules.ts'
export type { OfflineRequest } from './offline-request.ts'

/** Answers by rules, without a network, and says so in every text. The same prompt gets the same answer, ids included. */
export class OfflineModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'offline'
  readonly modelId = 'offline'
  readonly supportedUrls = {}
  readonly #rules: readonly OfflineRule[]

  constructor(rules: readonly OfflineRule[] = []) {
    this.#rules = rules
  }

  async doGenerate(options: LanguageModelV4CallOptions): Promise<LanguageModelV4GenerateResult> {
    options.abortSignal?.throwIfAborted()
    const request = offlineRequest(options)
    const answer = options.responseFormat?.type === 'json' ? answerOfflineAsJson(this.#rules, request) : answerOffline(this.#rules, request)
    const id = `offline-${(await promptHash(options.prompt)).slice(0, 16)}`
    const content = contentOf(answer, id)
    return {
      content,
      finishReason: { unified: answer.tool ? 'tool-calls' : 'stop', raw: undefined },
      usage: usageOf(estimatePromptTokens(options.prompt), estimateContentTokens(content)),
      response: { id, modelId: this.modelId },
      warnings: [],
    }
  }

  async doStream(options: LanguageModelV4CallOptions): Promise<LanguageModelV4StreamResult> {
    return { stream: streamOf(await this.doGenerate(options), options.abortSignal) }
  }
}

// A tool call's id comes from the prompt, which grows with every step: so it is unique in its conversation, and the same in a replay.
function contentOf({ text, tool }: OfflineAnswer, id: string): (LanguageModelV4Text | LanguageModelV4ToolCall)[] {
  return [
    ...(text === undefined ? [] : [{ type: 'text' as const, text }]),
    ...(tool === undefined
      ? []
      : [{ type: 'tool-call' as const, toolCallId: `call-${id}`, toolName: tool.name, input: JSON.stringify(tool.input ?? {}) }]),
  ]
}

function usageOf(input: number, output: number): LanguageModelV4Usage {
  return {
    inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: undefined },
  }
}
