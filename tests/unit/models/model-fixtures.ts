import type { LanguageModelV4GenerateResult, LanguageModelV4StreamPart, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { ModelCall, MeterOptions } from '../../../src/models/model-call.ts'

export function usage(input: number | undefined, output: number | undefined): LanguageModelV4Usage {
  return {
    inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: undefined },
  }
}

export function answer(overrides: Partial<LanguageModelV4GenerateResult> = {}): LanguageModelV4GenerateResult {
  return {
    content: [{ type: 'text', text: 'Hello there' }],
    finishReason: { unified: 'stop', raw: undefined },
    usage: usage(1_000_000, 2_000_000),
    warnings: [],
    ...overrides,
  }
}

export const streamedAnswer: LanguageModelV4StreamPart[] = [
  { type: 'text-start', id: 'a' },
  { type: 'text-delta', id: 'a', delta: 'Hello ' },
  { type: 'text-delta', id: 'a', delta: 'there' },
  { type: 'text-end', id: 'a' },
  { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"at":"sky"}' },
  { type: 'finish', finishReason: { unified: 'tool-calls', raw: undefined }, usage: usage(7, 3) },
]

/** Meter options that allow everything; the clock advances 5 ms per read, `calls` records calls. */
export function recorder(overrides: Partial<MeterOptions> = {}): MeterOptions & { calls: ModelCall[] } {
  const calls: ModelCall[] = []
  let time = 0
  return { calls, allow: () => ({ ok: true }), record: (call) => calls.push(call), now: () => (time += 5), ...overrides }
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = []
  for await (const item of items) collected.push(item)
  return collected
}
