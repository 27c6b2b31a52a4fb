import type { LanguageModelV4Usage } from '@ai-sdk/provider'

/** The usage of several calls together; a count is unknown only if no call reports it. */
export function usageSum(usages: readonly LanguageModelV4Usage[]): LanguageModelV4Usage {
  const [only, ...more] = usages
  if (only && more.length === 0) return only
  const inputs = usages.map(({ inputTokens }) => inputTokens)
  const outputs = usages.map(({ outputTokens }) => outputTokens)
  return {
    inputTokens: {
      total: sum(inputs.map(({ total }) => total)),
      noCache: sum(inputs.map(({ noCache }) => noCache)),
      cacheRead: sum(inputs.map(({ cacheRead }) => cacheRead)),
      cacheWrite: sum(inputs.map(({ cacheWrite }) => cacheWrite)),
    },
    outputTokens: {
      total: sum(outputs.map(({ total }) => total)),
      text: sum(outputs.map(({ text }) => text)),
      reasoning: sum(outputs.map(({ reasoning }) => reasoning)),
    },
  }
}

function sum(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined)
  return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0)
}
