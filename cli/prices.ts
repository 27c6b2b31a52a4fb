import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { calcPrice, findProvider, type MatchLogic } from '@pydantic/genai-prices'

/**
 * Writes src/models/prices.json from a maintained price list: USD per million tokens, input then
 * output. The list itself is left out of the Worker, whose size it would raise by a fifth. Of
 * several prices the lowest tier counts, and the most expensive hour of the day.
 */
const PROVIDERS = ['cloudflare', 'openai', 'anthropic', 'google', 'mistral', 'x-ai', 'deepseek']
const DAY = Date.parse('2026-11-22T00:30:00Z')
const HOURS = Array.from({ length: 24 }, (_, hour) => new Date(DAY + hour * 3_600_000))
/** Models of other kinds, and open ones, which every provider sells at its own price. */
const LEFT_OUT =
  /audio|realtime|tts|transcribe|whisper|embed|image|moderation|ocr|search|video|voxtral|^gpt-oss|gemma|llama|qwen|mixtral|:|-$/
const DATED = /-\d{4}(?:-\d{2}-\d{2}|\d{4})?$/
/** Few enough for the lowest tier of every price. */
const TOKENS = 1000

const prices: Record<string, [input: number, output: number]> = {}
for (const providerId of PROVIDERS) {
  for (const { id, match } of findProvider({ providerId })?.models ?? []) {
    for (const name of [id, ...exactNames(match)].filter(isText)) {
      const input = priceOf(name, providerId, 'input_tokens')
      const output = priceOf(name, providerId, 'output_tokens')
      if (input > 0 && output > 0) prices[name] ??= [input, output]
    }
  }
}
// `costOf` finds a dated name by the name without its date.
const listed = Object.entries(prices).filter(
  ([name, price]) => String(prices[name.replace(DATED, '')]) !== String(price) || !DATED.test(name),
)
const lines = listed
  .toSorted(([one], [other]) => (one < other ? -1 : 1))
  .map(([name, price]) => `  ${JSON.stringify(name)}: [${price.join(', ')}]`)
await writeFile(path.join(import.meta.dirname, '../src/models/prices.json'), `{\n${lines.join(',\n')}\n}\n`)
console.log(`prices.json: ${lines.length} models`)

function exactNames(match: MatchLogic): string[] {
  if ('or' in match) return match.or.flatMap(exactNames)
  return 'equals' in match ? [match.equals] : []
}

function isText(name: string): boolean {
  return name.startsWith('@cf/') || (!LEFT_OUT.test(name) && !name.includes('/'))
}

function priceOf(name: string, providerId: string, kind: 'input_tokens' | 'output_tokens'): number {
  const costs = HOURS.map((timestamp) => calcPrice({ [kind]: TOKENS }, name, { providerId, timestamp })?.total_price ?? 0)
  return Number(((Math.max(...costs) / TOKENS) * 1_000_000).toPrecision(6))
}
