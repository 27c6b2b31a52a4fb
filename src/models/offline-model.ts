import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamResult,
  LanguageModelV4Text,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  LanguageModelV4StreamPart,
  LanguageModelV4Prompt,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider'
import { promptHash, estimateContentTokens, estimatePromptTokens } from './model-call.ts'
import { isJsonFields, jsonValue } from '../base/json.ts'

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

/** Stands before every text of the offline model, so that nobody takes it for a model's answer. */
export const OFFLINE_PREFIX = '[offline model: no model was asked]'

export type OfflineAnswer = { text?: string; tool?: { name: string; input: unknown } }
/** `verbatim`: its texts lack the prefix, as texts of a model that a test scripts. */
export type OfflineRule = { name: string; verbatim?: boolean; answer(request: OfflineRequest): OfflineAnswer | null }

/** The first rule's answer that fits the request, else an extract of the request. */
function answerOffline(rules: readonly OfflineRule[], request: OfflineRequest): OfflineAnswer {
  const { text, tool, verbatim } = firstAnswer(rules, request, () => true) ?? { text: extract(request) }
  // Silence claims nothing.
  const said = text === undefined || text === '' || verbatim ? text : `${OFFLINE_PREFIX} ${text}`
  return { ...(said !== undefined && { text: said }), ...(tool && { tool }) }
}

/**
 * For structured output, without the prefix. Throws if no rule has a JSON object or a tool call.
 */
function answerOfflineAsJson(rules: readonly OfflineRule[], request: OfflineRequest): OfflineAnswer {
  const answer = firstAnswer(rules, request, ({ text, tool }) => tool !== undefined || isJsonObject(text))
  if (answer === null) {
    throw new Error(
      "The offline model can't produce structured output without a rule: no offline rule answered this request with a JSON object. " +
        'Give resolveModel a rule that does, or set REFLEX_MODEL to a real model.',
    )
  }
  return answer.tool && !isJsonObject(answer.text) ? { tool: answer.tool } : answer
}

function firstAnswer(
  rules: readonly OfflineRule[],
  request: OfflineRequest,
  fits: (answer: OfflineAnswer) => boolean,
): (OfflineAnswer & { verbatim?: boolean | undefined }) | null {
  for (const rule of rules) {
    const answer = rule.answer(request)
    if (answer === null || (answer.text === undefined && answer.tool === undefined) || !fits(answer)) continue
    if (answer.tool && !request.tools.includes(answer.tool.name)) {
      const offered = request.tools.join(', ') || 'none'
      throw new Error(
        `Offline rule "${rule.name}" calls the tool "${answer.tool.name}", which this call doesn't offer (offered: ${offered}).`,
      )
    }
    return { ...answer, verbatim: rule.verbatim }
  }
  return null
}

const isJsonObject = (text = ''): boolean => isJsonFields(jsonValue(text))

export type OfflineRequest = {
  system: string
  text: string
  messages: LanguageModelV4Prompt
  tools: string[]
  /** The result of the last tool call since the last user message; absent if there was none. */
  last_tool_result?: { tool: string; output: unknown }
}

function offlineRequest({ prompt, tools, toolChoice }: LanguageModelV4CallOptions): OfflineRequest {
  const system = prompt.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  const lastUser = prompt.findLastIndex((message) => message.role === 'user')
  const result = prompt
    .slice(lastUser + 1)
    .flatMap(toolResults)
    .at(-1)
  return {
    system: system.join('\n\n'),
    text: userText(prompt[lastUser]),
    messages: prompt,
    tools: toolChoice?.type === 'none' ? [] : (tools ?? []).map((tool) => tool.name),
    ...(result && { last_tool_result: { tool: result.toolName, output: plainOutput(result.output) } }),
  }
}

function userText(message: LanguageModelV4Prompt[number] | undefined): string {
  if (message?.role !== 'user') return ''
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
}

function toolResults(message: LanguageModelV4Prompt[number]): LanguageModelV4ToolResultPart[] {
  return message.role === 'tool' ? message.content.filter((part) => part.type === 'tool-result') : []
}

function plainOutput(output: LanguageModelV4ToolResultOutput): unknown {
  if (output.type === 'error-text' || output.type === 'error-json') return { error: output.value }
  if (output.type === 'execution-denied') return { denied: output.reason ?? true }
  return output.value
}

const MAX_COUNTS = 5
const MAX_QUOTE = 120
const COUNT = /^[\s*-]*([\w.:/@][\w .:/@-]{0,60}?)\s*[:=]\s*(\d+)\s*$/

/** A summary without a model: of the last tool result, the last event, or the request. */
function extract({ text, last_tool_result }: OfflineRequest): string {
  if (last_tool_result) return `The tool ${last_tool_result.tool} answered ${quote(JSON.stringify(last_tool_result.output) ?? 'nothing')}.`
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const [first] = lines
  const last = lines.at(-1)
  if (first === undefined || last === undefined) return 'The message is empty.'
  if (lines.length === 1) return `The message reads ${quote(ownText(first))}.`
  const own = ownText(last)
  // The lines before an event are the prompt's own, and say nothing to whoever sent it.
  if (own !== last) return `The last event reads ${quote(own)}.`
  return [`The message has ${lines.length} lines.`, counts(lines), `The first reads ${quote(first)}, the last ${quote(last)}.`]
    .filter(Boolean)
    .join(' ')
}

/** The text of an event, if the line is one: its fields without those that every event has. */
function ownText(line: string): string {
  const event = jsonValue(line.trim())
  if (!isJsonFields(event) || typeof event['type'] !== 'string') return line
  const { type, id: _id, source: _source, timestamp: _timestamp, connection_id: _connection, ...own } = event
  return `${type}: ${Object.values(own)
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join(', ')}`
}

function counts(lines: string[]): string {
  const found = lines.flatMap((line) => {
    const [, name, count] = COUNT.exec(line) ?? []
    return name === undefined ? [] : [`${name.trim()} ${count}`]
  })
  if (found.length === 0) return ''
  return `It counts ${found.slice(0, MAX_COUNTS).join(', ')}${found.length > MAX_COUNTS ? ' and more' : ''}.`
}

function quote(line: string): string {
  const trimmed = line.trim()
  return `"${trimmed.length > MAX_QUOTE ? `${trimmed.slice(0, MAX_QUOTE)}…` : trimmed}"`
}
