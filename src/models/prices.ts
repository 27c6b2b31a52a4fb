/**
 * USD per million tokens, input then output, for text at the standard rate. The list was made in 2026-11, from the public price
 * tables of mid-2026 (Workers AI's pricing page, models.dev). Discounts for cached input and batches are left out, so that a cost
 * errs on the high side. Open models that many providers serve at prices of their own are listed for Workers AI alone.
 */
const PRICES: Record<string, readonly [input: number, output: number]> = {
  '@cf/aisingapore/gemma-sea-lion-v4-27b-it': [0.351, 0.555],
  '@cf/deepseek-ai/deepseek-r1-distill-qwen-32b': [0.497, 4.881],
  '@cf/google/gemma-4-26b-a4b-it': [0.1, 0.3],
  '@cf/ibm-granite/granite-4.0-h-micro': [0.017, 0.112],
  '@cf/meta/llama-3-8b-instruct': [0.282, 0.827],
  '@cf/meta/llama-3.1-8b-instruct': [0.282, 0.827],
  '@cf/meta/llama-3.1-8b-instruct-awq': [0.123, 0.266],
  '@cf/meta/llama-3.1-8b-instruct-fp8': [0.152, 0.287],
  '@cf/meta/llama-3.1-8b-instruct-fp8-fast': [0.045, 0.384],
  '@cf/meta/llama-3.1-70b-instruct-fp8-fast': [0.293, 2.253],
  '@cf/meta/llama-3.2-1b-instruct': [0.027, 0.201],
  '@cf/meta/llama-3.2-3b-instruct': [0.051, 0.335],
  '@cf/meta/llama-3.2-11b-vision-instruct': [0.049, 0.676],
  '@cf/meta/llama-3.3-70b-instruct-fp8-fast': [0.293, 2.253],
  '@cf/meta/llama-4-scout-17b-16e-instruct': [0.27, 0.85],
  '@cf/mistral/mistral-7b-instruct-v0.1': [0.11, 0.19],
  '@cf/mistralai/mistral-small-3.1-24b-instruct': [0.351, 0.555],
  '@cf/moonshotai/kimi-k2.6': [0.95, 4],
  '@cf/moonshotai/kimi-k2.7-code': [0.95, 4],
  '@cf/nvidia/nemotron-3-120b-a12b': [0.5, 1.5],
  '@cf/openai/gpt-oss-20b': [0.2, 0.3],
  '@cf/openai/gpt-oss-120b': [0.35, 0.75],
  '@cf/qwen/qwen2.5-coder-32b-instruct': [0.66, 1],
  '@cf/qwen/qwen3-30b-a3b-fp8': [0.051, 0.335],
  '@cf/qwen/qwq-32b': [0.66, 1],
  '@cf/zai-org/glm-4.7-flash': [0.061, 0.4],
  '@cf/zai-org/glm-5.2': [1.4, 4.4],

  'gpt-4-turbo': [10, 30],
  'gpt-4.1': [2, 8],
  'gpt-4.1-mini': [0.4, 1.6],
  'gpt-4.1-nano': [0.1, 0.4],
  'gpt-4o': [2.5, 10],
  'gpt-4o-2024-05-13': [5, 15],
  'gpt-4o-mini': [0.15, 0.6],
  'gpt-5': [1.25, 10],
  'gpt-5-chat': [1.25, 10],
  'gpt-5-codex': [1.25, 10],
  'gpt-5-mini': [0.25, 2],
  'gpt-5-nano': [0.05, 0.4],
  'gpt-5-pro': [15, 120],
  'gpt-5.1': [1.25, 10],
  'gpt-5.1-chat': [1.25, 10],
  'gpt-5.1-codex': [1.25, 10],
  'gpt-5.1-codex-max': [1.25, 10],
  'gpt-5.1-codex-mini': [0.25, 2],
  'gpt-5.2': [1.75, 14],
  'gpt-5.2-chat': [1.75, 14],
  'gpt-5.2-codex': [1.75, 14],
  'gpt-5.2-pro': [21, 168],
  'gpt-5.3-chat': [1.75, 14],
  'gpt-5.3-codex': [1.75, 14],
  'gpt-5.4': [2.5, 15],
  'gpt-5.4-mini': [0.75, 4.5],
  'gpt-5.4-nano': [0.2, 1.25],
  'gpt-5.4-pro': [30, 180],
  'gpt-5.5': [5, 30],
  'gpt-5.5-pro': [30, 180],
  o1: [15, 60],
  'o1-pro': [150, 600],
  o3: [2, 8],
  'o3-mini': [1.1, 4.4],
  'o3-pro': [20, 80],
  'o4-mini': [1.1, 4.4],

  'claude-haiku-4-5': [1, 5],
  'claude-opus-4-5': [5, 25],
  'claude-opus-4-6': [5, 25],
  'claude-opus-4-7': [5, 25],
  'claude-sonnet-4-5': [3, 15],
  'claude-sonnet-4-6': [3, 15],
  'deepseek-chat': [0.14, 0.28],
  'deepseek-reasoner': [0.14, 0.28],
  'deepseek-v4-flash': [0.14, 0.28],
  'deepseek-v4-pro': [0.435, 0.87],
  'gemini-2.5-flash': [0.3, 2.5],
  'gemini-2.5-flash-lite': [0.1, 0.4],
  'gemini-2.5-pro': [1.25, 10],
  'gemini-3.1-flash-lite': [0.25, 1.5],
  'gemini-3.5-flash': [1.5, 9],
  'grok-4.3': [1.25, 2.5],
  'mistral-large-2411': [2, 6],
  'mistral-large-2512': [0.5, 1.5],
  'mistral-large-latest': [0.5, 1.5],
  'mistral-medium-2505': [0.4, 2],
  'mistral-medium-2508': [0.4, 2],
  'mistral-medium-2604': [1.5, 7.5],
  'mistral-small-2506': [0.1, 0.3],
  'mistral-small-2603': [0.15, 0.6],
  'mistral-small-latest': [0.15, 0.6],
}

const LONGEST_FIRST = Object.keys(PRICES).sort((a, b) => b.length - a.length)

/**
 * What may follow a listed name and still be the same model: a date or `latest`. Anything else (`-pro`, `-fast`) is another model with
 * a price of its own, and an unknown price is better than a wrong one.
 */
const SAME_MODEL = /^(-\d{4}-\d{2}-\d{2}|-\d{4}|-\d{8}|-latest)?$/

/** USD for one call, or null when the model's price is unknown; the offline model costs 0. Takes names with or without the provider's prefix. */
export function costOf(model: string, tokens: { input_tokens: number; output_tokens: number }): number | null {
  if (model === 'offline') return 0
  const name = withoutProvider(model)
  const listed = LONGEST_FIRST.find((prefix) => name.startsWith(prefix) && SAME_MODEL.test(name.slice(prefix.length)))
  const price = listed === undefined ? undefined : PRICES[listed]
  return price === undefined ? null : (tokens.input_tokens * price[0] + tokens.output_tokens * price[1]) / 1_000_000
}

function withoutProvider(model: string): string {
  const workersAI = model.indexOf('@cf/')
  return workersAI >= 0 ? model.slice(workersAI) : model.slice(model.lastIndexOf('/') + 1)
}
