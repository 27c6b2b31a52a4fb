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
  plain,
  sse,
  withoutNulls,
  type AnswerWriter,
  type ProviderForm,
  type WholeAnswer,
} from './form.ts'
import { NO_LOGPROBS, openaiFailure, reasoningOf } from './openai-chat.ts'

const text = z.string()
const part = z.looseObject({ type: text, text: text.optional(), refusal: text.optional(), image_url: text.nullish() })
const content = z.union([text, z.array(part)])
const roles = z.enum(['system', 'developer', 'user', 'assistant'])
const item = z.union([
  z.looseObject({ type: z.literal('message').optional(), role: roles, content }),
  z.looseObject({ type: z.literal('function_call'), call_id: text, name: text, arguments: text }),
  z.looseObject({ type: z.literal('function_call_output'), call_id: text, output: content }),
  z.looseObject({ type: z.literal('reasoning') }),
])
const tool = z.looseObject({
  type: text,
  name: text.max(128).optional(),
  description: text.nullish(),
  parameters: jsonSchema.nullish(),
  strict: z.boolean().nullish(),
})
const number = z.number().nullish()
const body = z.looseObject({
  model: text.min(1).max(200),
  input: z.union([text, z.array(item).max(10_000)]),
  instructions: text.nullish(),
  tools: z.array(tool).max(128).nullish(),
  tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.literal('function'), name: text })]).nullish(),
  text: z
    .looseObject({
      format: z
        .looseObject({
          type: z.enum(['text', 'json_object', 'json_schema']),
          name: text.optional(),
          description: text.nullish(),
          schema: jsonSchema.optional(),
        })
        .nullish(),
    })
    .nullish(),
  include: z.array(text).nullish(),
  stream: z.boolean().nullish(),
  user: text.max(200).nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  temperature: number,
  top_p: number,
  reasoning: z.looseObject({ effort: text.nullish() }).nullish(),
  previous_response_id: text.nullish(),
  conversation: z.unknown().optional(),
  background: z.boolean().nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
})
type Body = z.infer<typeof body>

const REFUSED = {
  top_logprobs: NO_LOGPROBS,
  prompt: 'no prompts are stored here: send instructions and input',
}

/** `POST /responses` of OpenAI, for callers that send the whole conversation. */
export const openaiResponses: ProviderForm<Body> = {
  api: 'openai.responses',
  body,
  parse: (given) => {
    const { model, stream, user, tools, tool_choice, max_output_tokens, temperature, top_p, reasoning, include } = given
    if (given.previous_response_id != null || given.conversation != null)
      throw new NotServed(
        'no responses are stored here: send the whole conversation as input, without previous_response_id and conversation',
      )
    if (given.background) throw new NotServed('background is not served: wait for the answer, or stream it')
    demandServed(given, REFUSED)
    if (include?.includes('message.output_text.logprobs')) throw new NotServed(NO_LOGPROBS)
    return {
      model,
      streams: stream ?? false,
      user: user ?? undefined,
      request: {
        prompt: promptOf(given),
        tools: (tools ?? []).map(functionTool),
        options: {
          ...withoutNulls({ maxOutputTokens: max_output_tokens, temperature, topP: top_p }),
          ...(tool_choice && { toolChoice: typeof tool_choice === 'string' ? { type: tool_choice } : namedTool(tool_choice.name) }),
          ...formatOf(given.text?.format),
          ...reasoningOf(reasoning?.effort),
        },
      },
    }
  },
  whole: (answer, given) => responseOf(answer, given, { finish: answer.finish, output: outputOf(answer), usage: answer }),
  writer: (of, given) => new ResponseWriter(of, given),
  failure: openaiFailure,
}

function functionTool({ type, name, description, parameters, strict }: z.infer<typeof tool>) {
  if (type !== 'function' || name === undefined)
    throw new NotServed(`tools of the type ${type} are not served: offer functions, which the caller runs`)
  const about = withoutNulls({ description, strict })
  return { type: 'function' as const, name, inputSchema: parameters ?? { type: 'object' as const, properties: {} }, ...about }
}

function formatOf(format: NonNullable<Body['text']>['format']) {
  if (!format || format.type === 'text') return {}
  const { name, description, schema } = format
  return { responseFormat: { type: 'json' as const, ...withoutNulls({ name, description, schema }) } }
}

function promptOf({ instructions, input }: Body): LanguageModelV4Prompt {
  const growing = new GrowingPrompt()
  if (instructions != null) growing.add({ role: 'system', content: instructions })
  if (typeof input === 'string') growing.add({ role: 'user', content: [{ type: 'text', text: input }] })
  for (const one of typeof input === 'string' ? [] : input) {
    if (one.type === 'function_call')
      growing.addToAssistant([{ type: 'tool-call', toolCallId: one.call_id, toolName: one.name, input: inputOf(one.arguments) }])
    else if (one.type === 'function_call_output') growing.addResult({ id: one.call_id, text: plain(one.output) })
    else if (one.type !== 'reasoning') {
      const { role } = one
      if (role === 'assistant') growing.addToAssistant([{ type: 'text', text: plain(one.content) }])
      else if (role === 'user') growing.add({ role, content: userParts(one.content) })
      else growing.add({ role: 'system', content: plain(one.content) })
    }
  }
  return growing.prompt
}

type Content = z.infer<typeof content>

function userParts(given: Content) {
  if (typeof given === 'string') return [{ type: 'text' as const, text: given }]
  return given.map((one) => {
    if (one.type === 'input_text') return { type: 'text' as const, text: one.text ?? '' }
    if (one.type === 'input_image' && one.image_url) return filePart(one.image_url, 'image/*')
    throw new NotServed(`content of the type ${one.type} is not taken: input_text and input_image are`)
  })
}

type AnswerName = Pick<WholeAnswer, 'id' | 'model' | 'at'>
/** `finish`: null while the answer is being made. */
type State = { finish: string | null; output: readonly object[]; usage: Pick<WholeAnswer, 'input_tokens' | 'output_tokens'> | null }

/** Why an answer has no end of its own. */
const REASONS: Readonly<Record<string, string>> = { length: 'max_output_tokens', 'content-filter': 'content_filter' }
const statusOf = (finish: string | null): string =>
  finish === null ? 'in_progress' : REASONS[finish] === undefined ? 'completed' : 'incomplete'

function responseOf({ id, model, at }: AnswerName, given: Body, { finish, output, usage }: State): object {
  const reason = REASONS[finish ?? '']
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: at,
    status: statusOf(finish),
    background: false,
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    instructions: given.instructions ?? null,
    max_output_tokens: given.max_output_tokens ?? null,
    model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: given.reasoning?.effort ?? null, summary: null },
    store: false,
    temperature: given.temperature ?? null,
    text: given.text ?? { format: { type: 'text' } },
    tool_choice: given.tool_choice ?? 'auto',
    tools: given.tools ?? [],
    top_p: given.top_p ?? null,
    truncation: 'disabled',
    usage: usage && usageOf(usage),
    user: given.user ?? null,
    metadata: given.metadata ?? {},
  }
}

const usageOf = ({ input_tokens, output_tokens }: Pick<WholeAnswer, 'input_tokens' | 'output_tokens'>) => ({
  input_tokens,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input_tokens + output_tokens,
})

const textPart = (said: string) => ({ type: 'output_text', text: said, annotations: [], logprobs: [] })
const messageItem = (id: string, said: string | null) => ({
  id: `msg_${id}`,
  type: 'message',
  status: said === null ? 'in_progress' : 'completed',
  role: 'assistant',
  content: said === null ? [] : [textPart(said)],
})
const callItem = ({ id, name, input }: WholeAnswer['calls'][number], done = true) => ({
  id: `fc_${id.slice('call_'.length)}`,
  type: 'function_call',
  status: done ? 'completed' : 'in_progress',
  call_id: id,
  name,
  arguments: done ? input : '',
})

const outputOf = ({ id, text: said, calls }: WholeAnswer): object[] => [
  ...(said === '' && calls.length > 0 ? [] : [messageItem(id, said)]),
  ...calls.map((call) => callItem(call)),
]

/** The events of a response, in their order. */
class ResponseWriter implements AnswerWriter {
  readonly #of: AnswerName
  readonly #given: Body
  readonly #output: object[] = []
  #sequence = 0
  #said: string | null = null
  #began = false

  constructor(of: AnswerName, given: Body) {
    this.#of = of
    this.#given = given
  }

  write(line: Parameters<AnswerWriter['write']>[0]): string[] {
    const begun = this.#begin()
    if (line.line === 'text') return [...begun, ...this.#say(line.text)]
    if (line.line === 'call') return [...begun, ...this.#endText(), ...this.#call(line)]
    const empty = this.#output.length === 0 && this.#said === null ? this.#say('') : []
    const ended = [...begun, ...empty, ...this.#endText()]
    const response = responseOf(this.#of, this.#given, { finish: line.finish, output: this.#output, usage: line })
    return [...ended, this.#event(`response.${statusOf(line.finish)}`, { response })]
  }

  failed(failure: Parameters<AnswerWriter['failed']>[0]): string {
    const { error } = openaiFailure(failure) as { error: { message: string; code: string | null } }
    return this.#event('error', { code: error.code ?? 'server_error', message: error.message, param: null })
  }

  #event(type: string, fields: object): string {
    this.#sequence += 1
    return sse({ type, sequence_number: this.#sequence - 1, ...fields }, type)
  }

  #begin(): string[] {
    if (this.#began) return []
    this.#began = true
    const response = responseOf(this.#of, this.#given, { finish: null, output: [], usage: null })
    return [this.#event('response.created', { response }), this.#event('response.in_progress', { response })]
  }

  get #place() {
    return { output_index: this.#output.length, item_id: `msg_${this.#of.id}`, content_index: 0 }
  }

  #say(delta: string): string[] {
    const { output_index, item_id, content_index } = this.#place
    const first = this.#said === null
    this.#said = (this.#said ?? '') + delta
    const opened = first
      ? [
          this.#event('response.output_item.added', { output_index, item: messageItem(this.#of.id, null) }),
          this.#event('response.content_part.added', { item_id, output_index, content_index, part: textPart('') }),
        ]
      : []
    return delta === ''
      ? opened
      : [...opened, this.#event('response.output_text.delta', { item_id, output_index, content_index, delta, logprobs: [] })]
  }

  #endText(): string[] {
    if (this.#said === null) return []
    const said = this.#said
    const { output_index, item_id, content_index } = this.#place
    const done = messageItem(this.#of.id, said)
    const events = [
      this.#event('response.output_text.done', { item_id, output_index, content_index, text: said, logprobs: [] }),
      this.#event('response.content_part.done', { item_id, output_index, content_index, part: textPart(said) }),
      this.#event('response.output_item.done', { output_index, item: done }),
    ]
    this.#output.push(done)
    this.#said = null
    return events
  }

  #call(call: WholeAnswer['calls'][number]): string[] {
    const output_index = this.#output.length
    const item_of = callItem(call)
    this.#output.push(item_of)
    const at = { item_id: item_of.id, output_index }
    return [
      this.#event('response.output_item.added', { output_index, item: callItem(call, false) }),
      this.#event('response.function_call_arguments.delta', { ...at, delta: call.input }),
      this.#event('response.function_call_arguments.done', { ...at, name: call.name, arguments: call.input }),
      this.#event('response.output_item.done', { output_index, item: item_of }),
    ]
  }
}
