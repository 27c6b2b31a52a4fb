import type { LanguageModelV4Usage } from '@ai-sdk/provider'

/** The usage of several calls together; a count is unknown only if no call reports it. */
export function usageSum(usages: readonly LanguageModelV4Usage[]): LanguageModelV4Usage {
  const [only, ...more] = usages
  if (only && more.length === 0) return only
  const sums = <Counts extends object>(all: readonly Counts[]): Counts => {
    const names = [...new Set(all.flatMap((counts) => Object.keys(counts)))] as (keyof Counts)[]
    return Object.fromEntries(names.map((name) => [name, sum(all.map((counts) => counts[name] as number | undefined))])) as Counts
  }
  return { inputTokens: sums(usages.map((usage) => usage.inputTokens)), outputTokens: sums(usages.map((usage) => usage.outputTokens)) }
}

function sum(counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((count) => count !== undefined)
  return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0)
}
