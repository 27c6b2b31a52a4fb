import prices from './prices.json' with { type: 'json' }
import type {
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4Usage,
  LanguageModelV4Message,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider'
import type { ModelFault } from '../base/faults.ts'
import { ModelFailed, ModelRefused, type ModelRefusal } from './model-errors.ts'
import { estimateTokenCount } from 'tokenx'
import { sha256, jsonValue } from '../base/json.ts'
import { z } from 'zod'
import { wrapLanguageModel } from 'ai'
import { StreamContent } from './stream-content.ts'
import { watchStream } from './watch-stream.ts'

const price = z.number().min(0).max(1_000_000)
const ownPrices = z.record(z.string().min(1).max(200), z.strictObject({ input: price, output: price }))

/** USD per million input and output tokens, by the name of the model. */
export type OwnPrices = z.infer<typeof ownPrices>
type PriceEnv = { REFLEX_MODEL_PRICES?: string }

const HOW = 'write it as {"MODEL": {"input": 0.5, "output": 1.5}}: dollars per million tokens'
const NONE: OwnPrices = {}
let known: { text: string; prices: OwnPrices } | undefined

/** The deployment's prices. A value that cannot be read has none: readiness says what is wrong. */
export function ownPricesOf({ REFLEX_MODEL_PRICES: text }: PriceEnv): OwnPrices {
  if (text === undefined || text.trim() === '') return NONE
  if (known?.text !== text) known = { text, prices: ownPrices.safeParse(jsonValue(text)).data ?? NONE }
  return known.prices
}

/** Describes what is wrong with the variable, or null. */
export function ownPricesProblem({ REFLEX_MODEL_PRICES: text }: PriceEnv): string | null {
  if (text === undefined || text.trim() === '') return null
  const value = jsonValue(text)
  if (value === undefined) return `REFLEX_MODEL_PRICES is not valid JSON: ${HOW}.`
  const parsed = ownPrices.safeParse(value)
  if (parsed.success) return null
  const [issue] = parsed.error.issues
  return `REFLEX_MODEL_PRICES${issue?.path.map((key) => `["${String(key)}"]`).join('') ?? ''}: ${issue?.message}; ${HOW}.`
}

/** Says why a budget in money allows no call of a model, and what to do. */
export const unpricedText = (model: string): string =>
  `the model ${model} has no price, so a budget in money allows no call of it: give it one by the variable REFLEX_MODEL_PRICES (docs/cost.md)`

/** SHA-256 of the prompt as JSON. A replay uses it to find the recorded response. */
export const promptHash = (prompt: LanguageModelV4Prompt): Promise<string> => sha256(JSON.stringify(prompt))

/**
 * The tools that a call offers, with their schemas and by name, and its options, such as the
 * temperature.
 */
export function requestOf({
  prompt: _prompt,
  abortSignal: _signal,
  headers: _headers,
  tools,
  ...options
}: LanguageModelV4CallOptions): Omit<LanguageModelV4CallOptions, 'prompt' | 'abortSignal' | 'headers'> {
  return { ...options, ...(tools && { tools: tools.toSorted((one, other) => (one.name < other.name ? -1 : 1)) }) }
}

/** Parses the JSON text of a tool call's input, so that its secrets can be found. */
export function readable(part: unknown): unknown {
  if (typeof part !== 'object' || part === null || !('input' in part) || typeof part.input !== 'string') return part
  const input = jsonValue(part.input)
  return input === undefined ? part : { ...part, input }
}

/** Estimates the tokens if the provider reported none. Files are not counted. */
export function estimatePromptTokens(prompt: LanguageModelV4Prompt): number {
  return estimateTokenCount(prompt.flatMap(messageText).join('\n'))
}

/** More tokens than a call may take: its prompt and tools twice as estimated, and its answer. */
export function mostTokens({ prompt, tools = [], maxOutputTokens = 0 }: LanguageModelV4CallOptions) {
  const estimate = estimatePromptTokens(prompt) + estimateTokenCount(JSON.stringify(tools))
  return { input_tokens: 2 * estimate + 100, output_tokens: maxOutputTokens }
}

export function estimateContentTokens(content: LanguageModelV4Content[]): number {
  return estimateTokenCount(content.flatMap(partText).join('\n'))
}

function messageText(message: LanguageModelV4Message): string[] {
  return message.role === 'system' ? [message.content] : message.content.flatMap(partText)
}

type Part = Exclude<LanguageModelV4Message, { role: 'system' }>['content'][number] | LanguageModelV4Content

function partText(part: Part): string[] {
  if (part.type === 'text' || part.type === 'reasoning') return [part.text]
  if (part.type === 'tool-call') return [part.toolName, typeof part.input === 'string' ? part.input : JSON.stringify(part.input ?? null)]
  if (part.type === 'tool-result') return [part.toolName, JSON.stringify('output' in part ? part.output : part.result)]
  return []
}

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
type ModelCallAnswer = {
  content: LanguageModelV4Content[]
  usage?: LanguageModelV4Usage | undefined
  finish?: LanguageModelV4FinishReason | undefined
  error?: unknown
  taken: boolean
  cancelled?: boolean
}

type Call = { model: string; own_prices?: OwnPrices | undefined; prompt: LanguageModelV4Prompt; prompt_hash: string; duration_ms: number }

function modelCall({ model, own_prices, prompt, prompt_hash, duration_ms }: Call, answer: ModelCallAnswer): ModelCall {
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

function tokensOf(prompt: LanguageModelV4Prompt, { usage, content, taken }: ModelCallAnswer) {
  return {
    input_tokens: counted(usage?.inputTokens.total) ?? (taken ? estimatePromptTokens(prompt) : 0),
    output_tokens: counted(usage?.outputTokens.total) ?? estimateContentTokens(content),
  }
}

/**
 * Providers without usage report 0, -1 or nothing, none of which is true of a prompt that was
 * taken. A budget would grow by less than none, and never recover from more than there is.
 */
const counted = (tokens = 0): number | null => (Number.isSafeInteger(tokens) && tokens > 0 ? tokens : null)

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

/** `id`: of what was reserved for the call. */
type Allowed = { ok: true; id?: string | null }

export type MeterOptions = {
  /** Asked before each call. */
  allow: (params: LanguageModelV4CallOptions) => Allowed | ModelRefusal | Promise<Allowed | ModelRefusal>
  /** Told of each call once it has ended, failed and aborted ones included; not of refused ones. */
  record: (call: ModelCall, params: LanguageModelV4CallOptions, reserved: string | null) => void
  now?: () => number
  /** The name to record and to price by; the model's own id unless given. */
  name?: string
  own_prices?: OwnPrices
  /** Ends the call, even if its provider does not listen. */
  signal?: AbortSignal
}

/** Asks before each call and records it. Throws ModelRefused if the call is not allowed. */
export function meter(model: LanguageModelV4, options: MeterOptions): LanguageModelV4 {
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      async wrapGenerate({ doGenerate, params }) {
        const record = await begin(model, options, params)
        const result = await recorded(doGenerate, record, stopOf(params, options))
        record({ content: result.content, usage: result.usage, finish: result.finishReason, taken: true })
        return result
      },
      async wrapStream({ doStream, params }) {
        const record = await begin(model, options, params)
        const stop = stopOf(params, options)
        const result = await recorded(doStream, record, stop)
        return { ...result, stream: recordedStream(result.stream, record, stop) }
      },
    },
  })
}

const stopOf = ({ abortSignal }: LanguageModelV4CallOptions, { signal }: MeterOptions): AbortSignal | undefined =>
  abortSignal && signal ? AbortSignal.any([abortSignal, signal]) : (abortSignal ?? signal)

async function begin(model: LanguageModelV4, options: MeterOptions, params: LanguageModelV4CallOptions) {
  const { prompt } = params
  const { allow, record, now = Date.now, name = model.modelId, own_prices } = options
  const prompt_hash = await promptHash(prompt)
  // Asked last, so that nothing can be spent between the answer and the call.
  const allowed = await allow(params)
  if (!allowed.ok) throw new ModelRefused(allowed)
  const started = now()
  return (answer: ModelCallAnswer) =>
    record(modelCall({ model: name, own_prices, prompt, prompt_hash, duration_ms: now() - started }, answer), params, allowed.id ?? null)
}

async function recorded<Result>(
  work: () => PromiseLike<Result>,
  record: (answer: ModelCallAnswer) => void,
  signal: AbortSignal | undefined,
): Promise<Result> {
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(signal?.reason)
  signal?.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([work(), stopped.promise])
  } catch (error) {
    record({ content: [], error, taken: signal?.aborted ?? false })
    throw error
  } finally {
    signal?.removeEventListener('abort', stop)
  }
}

type Finish = { usage: LanguageModelV4Usage; finishReason: LanguageModelV4FinishReason }

function recordedStream(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  record: (answer: ModelCallAnswer) => void,
  signal: AbortSignal | undefined,
): ReadableStream<LanguageModelV4StreamPart> {
  const content = new StreamContent()
  let failure: unknown
  let recorded = false
  const settle = (finish: Finish | undefined, error: unknown, cancelled = false) => {
    if (recorded) return
    recorded = true
    const { parts } = content
    record({ content: parts, usage: finish?.usage, finish: finish?.finishReason, error: failure ?? error, taken: true, cancelled })
  }
  return watchStream(stream, {
    signal,
    onPart(part) {
      content.add(part)
      if (part.type === 'error') failure ??= part.error
      // The answer is whole now, whether or not the reader stays for the end.
      if (part.type === 'finish') settle(part, undefined)
    },
    onEnd: (error, cancelled) => settle(undefined, error, cancelled),
  })
}
