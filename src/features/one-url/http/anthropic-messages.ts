import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { z } from 'zod'
import {
  demandServed,
  filePart,
  GrowingPrompt,
  inputOf,
  jsonSchema,
  namedTool,
  NotServed,
  sse,
  withoutNulls,
  type AnswerWriter,
  type AnswerFailure,
  type ProviderForm,
  type WholeAnswer,
} from './form.ts'
import { reasoningOf } from './openai-chat.ts'

const text = z.string()
const source = z.looseObject({ type: text, media_type: text.optional(), data: text.optional(), url: text.optional() })
const block = z.looseObject({
  type: text,
  text: text.optional(),
  source: source.optional(),
  id: text.optional(),
  name: text.optional(),
  input: z.record(z.string(), z.unknown()).optional(),
  tool_use_id: text.optional(),
  content: z.union([text, z.array(z.looseObject({ type: text, text: text.optional() }))]).optional(),
  is_error: z.boolean().optional(),
})
const format = z.looseObject({ type: z.literal('json_schema'), schema: jsonSchema })
const body = z.looseObject({
  model: text.min(1).max(200),
  max_tokens: z.int().min(1),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant']), content: z.union([text, z.array(block)]) }))
    .min(1)
    .max(10_000),
  system: z.union([text, z.array(z.looseObject({ type: z.literal('text'), text }))]).optional(),
  tools: z
    .array(
      z.looseObject({
        type: text.nullish(),
        name: text.min(1).max(128),
        description: text.optional(),
        input_schema: jsonSchema.optional(),
      }),
    )
    .max(128)
    .optional(),
  tool_choice: z.looseObject({ type: z.enum(['auto', 'any', 'tool', 'none']), name: text.optional() }).optional(),
  stream: z.boolean().optional(),
  metadata: z.looseObject({ user_id: text.max(200).nullish() }).optional(),
  stop_sequences: z.array(text).max(16).optional(),
  temperature: z.number().optional(),
  top_p: z.number().optional(),
  top_k: z.int().optional(),
  output_format: format.nullish(),
  output_config: z.looseObject({ format: format.nullish(), effort: text.nullish() }).nullish(),
  thinking: z.looseObject({ type: z.enum(['enabled', 'disabled', 'adaptive']), budget_tokens: z.int().optional() }).nullish(),
})
type Body = z.infer<typeof body>
type Block = z.infer<typeof block>

const REFUSED = {
  mcp_servers: 'offer tools, which the caller runs',
  container: 'nothing is run for the caller here',
}

/** `POST /messages` of Anthropic. */
export const anthropicMessages: ProviderForm<Body> = {
  api: 'anthropic.messages',
  body,
  parse: (given) => {
    const { model, stream, metadata, tools, tool_choice, max_tokens, stop_sequences, temperature, top_p, top_k } = given
    demandServed(given, REFUSED)
    const schema = (given.output_config?.format ?? given.output_format)?.schema
    return {
      model,
      streams: stream ?? false,
      user: metadata?.user_id ?? undefined,
      request: {
        prompt: promptOf(given),
        tools: (tools ?? []).map(functionTool),
        options: {
          ...withoutNulls({ maxOutputTokens: max_tokens, stopSequences: stop_sequences, temperature, topP: top_p, topK: top_k }),
          ...(tool_choice && { toolChoice: choiceOf(tool_choice) }),
          ...reasoningOf(effortOf(given)),
          ...(schema && { responseFormat: { type: 'json', schema } }),
        },
      },
    }
  },
  whole: (answer) => ({
    ...messageOf(answer),
    content: [...(answer.text === '' ? [] : [{ type: 'text', text: answer.text, citations: null }]), ...answer.calls.map(useOf)],
    stop_reason: stopOf(answer.finish),
    usage: usageOf(answer),
  }),
  writer: (of) => new MessageWriter(of),
  failure: anthropicFailure,
}

/** The effort in words of OpenAI, by the budget where no effort is named. */
function effortOf({ output_config, thinking }: Body): string | null {
  const effort = output_config?.effort
  if (effort != null) return effort === 'max' ? 'xhigh' : effort
  if (thinking?.type === 'disabled') return 'none'
  if (thinking?.type !== 'enabled') return null
  const budget = thinking.budget_tokens ?? 0
  return budget < 4096 ? 'low' : budget < 16_384 ? 'medium' : 'high'
}

function functionTool({ type, name, description, input_schema }: NonNullable<Body['tools']>[number]) {
  if ((type ?? 'custom') !== 'custom')
    throw new NotServed(`tools of the type ${type} are not served: offer custom tools, which the caller runs`)
  const inputSchema = input_schema ?? { type: 'object' as const, properties: {} }
  return { type: 'function' as const, name, inputSchema, ...withoutNulls({ description }) }
}

function choiceOf({ type, name = '' }: NonNullable<Body['tool_choice']>) {
  if (type === 'tool') return namedTool(name)
  return { type: type === 'any' ? ('required' as const) : type }
}

function promptOf({ system, messages }: Body): LanguageModelV4Prompt {
  const instructions = typeof system === 'string' ? system : (system ?? []).map((one) => one.text).join('\n')
  const growing = new GrowingPrompt()
  if (instructions !== '') growing.add({ role: 'system', content: instructions })
  for (const { role, content } of messages) {
    const blocks: Block[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    if (role === 'assistant') growing.addToAssistant(blocks.flatMap(assistantPart))
    else addUser(growing, blocks)
  }
  return growing.prompt
}

/** Results of tools come first in a message of the user. */
function addUser(growing: GrowingPrompt, blocks: readonly Block[]): void {
  const parts = []
  for (const one of blocks) {
    if (one.type === 'tool_result') growing.addResult({ id: one.tool_use_id ?? '', text: resultText(one), failed: one.is_error ?? false })
    else parts.push(userPart(one))
  }
  if (parts.length > 0) growing.add({ role: 'user', content: parts })
}

const resultText = ({ content = '' }: Block): string =>
  typeof content === 'string' ? content : content.map((one) => one.text ?? '').join('')

function userPart({ type, text: said, source: from }: Block) {
  if (type === 'text') return { type: 'text' as const, text: said ?? '' }
  if ((type === 'image' || type === 'document') && from) {
    const media = from.media_type ?? (type === 'image' ? 'image/*' : 'application/pdf')
    return filePart(from.url ?? `data:${media};base64,${from.data ?? ''}`, media)
  }
  throw new NotServed(`content of the type ${type} is not taken: text, image, document and tool_result are`)
}

type AssistantPart = Parameters<GrowingPrompt['addToAssistant']>[0][number]

function assistantPart({ type, text: said = '', id = '', name = '', input = {} }: Block): AssistantPart[] {
  if (type === 'text') return [{ type: 'text', text: said }]
  // Thoughts belong to the model that had them.
  return type === 'tool_use' ? [{ type: 'tool-call', toolCallId: id, toolName: name, input }] : []
}

type AnswerName = Pick<WholeAnswer, 'id' | 'model'>
const messageOf = ({ id, model }: AnswerName) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [] as object[],
  stop_reason: null as string | null,
  stop_sequence: null,
  usage: usageOf({ input_tokens: 0, output_tokens: 0 }),
})

const usageOf = ({ input_tokens, output_tokens }: Pick<WholeAnswer, 'input_tokens' | 'output_tokens'>) => ({
  input_tokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens,
})

const useOf = ({ id, name, input }: WholeAnswer['calls'][number]) => ({ type: 'tool_use', id, name, input: inputOf(input) })

const STOPS: Readonly<Record<string, string>> = { length: 'max_tokens', 'tool-calls': 'tool_use', 'content-filter': 'refusal' }
const stopOf = (finish: string): string => STOPS[finish] ?? 'end_turn'

const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  529: 'overloaded_error',
}

export function anthropicFailure({ status, message }: AnswerFailure): object {
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
  return { type: 'error', error: { type, message } }
}

/** The events of a message: its blocks one after the other. */
class MessageWriter implements AnswerWriter {
  readonly #of: AnswerName
  #began = false
  #blocks = 0
  #open = false

  constructor(of: AnswerName) {
    this.#of = of
  }

  write(line: Parameters<AnswerWriter['write']>[0]): string[] {
    const begun = this.#begin()
    if (line.line === 'text') return [...begun, ...this.#say(line.text)]
    if (line.line === 'call') return [...begun, ...this.#end(), ...this.#call(line)]
    const delta = { stop_reason: stopOf(line.finish), stop_sequence: null }
    return [...begun, ...this.#end(), event({ type: 'message_delta', delta, usage: usageOf(line) }), event({ type: 'message_stop' })]
  }

  failed(failure: AnswerFailure): string {
    return event({ ...anthropicFailure(failure), type: 'error' })
  }

  #begin(): string[] {
    if (this.#began) return []
    this.#began = true
    return [event({ type: 'message_start', message: messageOf(this.#of) })]
  }

  #say(said: string): string[] {
    const index = this.#blocks
    const opened = this.#open ? [] : [event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } })]
    this.#open = true
    return [...opened, event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: said } })]
  }

  #end(): string[] {
    if (!this.#open) return []
    this.#open = false
    this.#blocks += 1
    return [event({ type: 'content_block_stop', index: this.#blocks - 1 })]
  }

  #call(call: WholeAnswer['calls'][number]): string[] {
    const index = this.#blocks
    this.#blocks += 1
    const content_block = { ...useOf(call), input: {} }
    return [
      event({ type: 'content_block_start', index, content_block }),
      event({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: call.input } }),
      event({ type: 'content_block_stop', index }),
    ]
  }
}

const event = (data: { type: string } & Readonly<Record<string, unknown>>): string => sse(data, data.type)
