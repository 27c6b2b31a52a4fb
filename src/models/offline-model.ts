import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamResult,
  LanguageModelV4Text,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import { offlineRequest, answerOffline, answerOfflineAsJson, type OfflineAnswer, type OfflineRule } from './offline-rules.ts'
import { promptHash, estimateContentTokens, estimatePromptTokens } from './prompt.ts'

export { OFFLINE_PREFIX, type OfflineAnswer, type OfflineRule } from './offline-rules.ts'
export type { OfflineRequest } from './offline-rules.ts'

/** Answers by rules without a network, and says so. Equal prompts get equal answers. */
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

// The id comes from the prompt, so it is unique in its conversation and stable in a replay.
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

const WORDS_A_DELTA = /(?:\S+\s*|\s+){1,3}/g

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
    } else if (part.type === 'reasoning') {
      const id = `reasoning-${index}`
      yield { type: 'reasoning-start', id }
      yield { type: 'reasoning-delta', id, delta: part.text }
      yield { type: 'reasoning-end', id }
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
