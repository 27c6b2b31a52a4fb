import prices from './prices.json' with { type: 'json' }
import type { LanguageModelV4Content, LanguageModelV4FinishReason, LanguageModelV4Prompt, LanguageModelV4Usage } from '@ai-sdk/provider'
import type { ModelFault } from '../base/faults.ts'
import type { OwnPrices } from './own-prices.ts'
import { ModelFailed } from './model-errors.ts'
import { estimateContentTokens, estimatePromptTokens } from './prompt.ts'

/**
 * A call of a model, as logged. Tokens are estimates if the provider reported none, and 0 if it
 * refused the call. `content` has the text, reasoning and tool-call parts, for replay.
 */
export type ModelCall = {
  model: string
  status: 'ok' | 'failed'
  input_tokens: number
  output_tokens: number
  cost_usd: number | null
  duration_ms: number
  prompt_hash: string
  finish_reason: LanguageModelV4FinishReason['unified'] | null
  content: unknown[]
  error: string | null
  fault?: ModelFault
  /** The reader of the stream did not want the rest. */
  cancelled?: true
}

/**
 * The facts known when a call has ended. `taken`: the provider accepted, and charges for, the
 * prompt.
 */
export type ModelCallAnswer = {
  content: LanguageModelV4Content[]
  usage?: LanguageModelV4Usage | undefined
  finish?: LanguageModelV4FinishReason | undefined
  error?: unknown
  taken: boolean
  cancelled?: boolean
}

type Call = { model: string; own_prices?: OwnPrices | undefined; prompt: LanguageModelV4Prompt; prompt_hash: string; duration_ms: number }

export function modelCall({ model, own_prices, prompt, prompt_hash, duration_ms }: Call, answer: ModelCallAnswer): ModelCall {
  const error = errorOf(answer)
  const fault = answer.error instanceof ModelFailed ? answer.error.fault : null
  const tokens = tokensOf(prompt, answer)
  return {
    model,
    status: error === null ? 'ok' : 'failed',
    ...tokens,
    cost_usd: costOf(model, tokens, own_prices),
    duration_ms,
    prompt_hash,
    finish_reason: answer.finish?.unified ?? null,
    content: answer.content.filter((part) => part.type === 'text' || part.type === 'reasoning' || part.type === 'tool-call'),
    error,
    ...(fault && { fault }),
    ...(answer.cancelled && { cancelled: true as const }),
  }
}

// Providers without usage report 0 or nothing; neither can be true of a prompt that was taken.
function tokensOf(prompt: LanguageModelV4Prompt, { usage, content, taken }: ModelCallAnswer) {
  return {
    input_tokens: usage?.inputTokens.total || (taken ? estimatePromptTokens(prompt) : 0),
    output_tokens: usage?.outputTokens.total || estimateContentTokens(content),
  }
}

function errorOf({ error, finish }: ModelCallAnswer): string | null {
  if (error !== undefined) return messageOf(error)
  if (finish === undefined) return 'the stream ended without a finish part'
  return finish.unified === 'error' || finish.unified === 'interrupted' ? `the model ended with finish reason "${finish.unified}"` : null
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name
  return typeof error === 'string' ? error : (JSON.stringify(error) ?? String(error))
}

/** USD per million input and output tokens, at the standard rate without discounts. */
const PRICES = new Map(Object.entries(prices))

const LONGEST_FIRST = [...PRICES.keys()].toSorted((left, right) => right.length - left.length)

/** Suffixes of the same model. Others (`-pro`, `-fast`) are models with their own prices. */
const SAME_MODEL = /^(-\d{4}-\d{2}-\d{2}|-\d{4}|-\d{8}|-latest)?$/

/**
 * USD for one call; null if the price is unknown. The provider's prefix is optional. The
 * deployment's own prices come before the list prices.
 */
export function costOf(model: string, tokens: { input_tokens: number; output_tokens: number }, own: OwnPrices = {}): number | null {
  if (model === 'offline') return 0
  const name = withoutProvider(model)
  const mine = own[model] ?? own[name]
  if (mine) return (tokens.input_tokens * mine.input + tokens.output_tokens * mine.output) / 1_000_000
  const listed = LONGEST_FIRST.find((prefix) => name.startsWith(prefix) && SAME_MODEL.test(name.slice(prefix.length)))
  const [input, output] = PRICES.get(listed ?? '') ?? []
  if (input === undefined || output === undefined) return null
  return (tokens.input_tokens * input + tokens.output_tokens * output) / 1_000_000
}

function withoutProvider(model: string): string {
  const workersAI = model.indexOf('@cf/')
  return workersAI >= 0 ? model.slice(workersAI) : model.slice(model.lastIndexOf('/') + 1)
}
