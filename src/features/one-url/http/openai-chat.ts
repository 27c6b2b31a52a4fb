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
  type AnswerFailure,
  type ProviderForm,
  type WholeAnswer,
} from './form.ts'

const text = z.string()
const part = z.looseObject({
  type: text,
  text: text.optional(),
  refusal: text.optional(),
  image_url: z.union([text, z.looseObject({ url: text })]).optional(),
})
const content = z.union([text, z.array(part)])
const toolCall = z.looseObject({ id: text, function: z.looseObject({ name: text, arguments: text }) })
const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.enum(['system', 'developer']), content }),
  z.looseObject({ role: z.literal('user'), content }),
  z.looseObject({ role: z.literal('assistant'), content: content.nullish(), tool_calls: z.array(toolCall).nullish() }),
  z.looseObject({ role: z.literal('tool'), content, tool_call_id: text }),
])
const number = z.number().nullish()
const format = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text') }),
  z.looseObject({ type: z.literal('json_object') }),
  z.looseObject({
    type: z.literal('json_schema'),
    json_schema: z.looseObject({ name: text.optional(), description: text.nullish(), schema: jsonSchema.optional() }),
  }),
])
const body = z.looseObject({
  model: text.min(1).max(200),
  messages: z.array(message).min(1).max(10_000),
  tools: z
    .array(
      z.looseObject({
        type: z.literal('function'),
        function: z.looseObject({
          name: text.min(1).max(128),
          description: text.nullish(),
          parameters: jsonSchema.nullish(),
          strict: z.boolean().nullish(),
        }),
      }),
    )
    .max(128)
    .nullish(),
  tool_choice: z
    .union([z.enum(['none', 'auto', 'required']), z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: text }) })])
    .nullish(),
  response_format: format.nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  user: text.max(200).nullish(),
  n: z.int().nullish(),
  modalities: z.array(text).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: number,
  top_p: number,
  presence_penalty: number,
  frequency_penalty: number,
  seed: z.int().nullish(),
  stop: z.union([text, z.array(text).max(4)]).nullish(),
  reasoning_effort: text.nullish(),
})
type Body = z.infer<typeof body>
type Content = z.infer<typeof content>

export const NO_LOGPROBS = 'answers have no probabilities of their tokens'
const REFUSED = {
  logprobs: NO_LOGPROBS,
  top_logprobs: NO_LOGPROBS,
  logit_bias: 'tokens have no weights here',
  functions: 'send tools',
  function_call: 'send tool_choice',
  audio: 'answers are text',
  web_search_options: 'offer a tool that searches, which the caller runs',
}

/** `POST /chat/completions` of OpenAI. */
export const openaiChat: ProviderForm<Body> = {
  api: 'openai.chat',
  body,
  parse: (given) => {
    const { model, stream, user, n, modalities, tools, tool_choice } = given
    if ((n ?? 1) !== 1) throw new NotServed('n must be 1: one answer is given')
    demandServed(given, REFUSED)
    if (modalities?.some((one) => one !== 'text')) throw new NotServed('modalities is ["text"]: answers are text')
    return {
      model,
      streams: stream ?? false,
      user: user ?? undefined,
      request: {
        prompt: promptOf(given.messages),
        tools: (tools ?? []).map(({ function: { name, description, parameters, strict } }) => ({
          type: 'function',
          name,
          ...(description != null && { description }),
          inputSchema: parameters ?? { type: 'object', properties: {} },
          ...(strict != null && { strict }),
        })),
        options: {
          ...numbersOf(given),
          ...(tool_choice && {
            toolChoice: typeof tool_choice === 'string' ? { type: tool_choice } : namedTool(tool_choice.function.name),
          }),
          ...formatOf(given.response_format),
          ...reasoningOf(given.reasoning_effort),
        },
      },
    }
  },
  whole: (answer) => ({
    ...chunkOf(answer, 'chat.completion'),
    choices: [{ index: 0, message: messageOf(answer), logprobs: null, finish_reason: finishOf(answer.finish) }],
    usage: usageOf(answer),
  }),
  writer: (of, { stream_options }) => {
    const chunk = (delta: object, finish: string | null = null) =>
      sse({ ...chunkOf(of, 'chat.completion.chunk'), choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })
    let began = false
    let calls = 0
    const begin = () => {
      const first = began ? [] : [chunk({ role: 'assistant', content: '', refusal: null })]
      began = true
      return first
    }
    return {
      write(line) {
        if (line.line === 'text') return [...begin(), chunk({ content: line.text })]
        if (line.line === 'call') {
          const { id, name, input } = line
          calls += 1
          return [...begin(), chunk({ tool_calls: [{ index: calls - 1, id, type: 'function', function: { name, arguments: input } }] })]
        }
        const usage = sse({ ...chunkOf(of, 'chat.completion.chunk'), choices: [], usage: usageOf(line) })
        const counted = stream_options?.include_usage ? [usage] : []
        return [...begin(), chunk({}, finishOf(line.finish)), ...counted, 'data: [DONE]\n\n']
      },
      failed: (failure) => sse(openaiFailure(failure)),
    }
  },
  failure: openaiFailure,
}

function numbersOf(given: Body) {
  const { max_tokens, max_completion_tokens, temperature, top_p, presence_penalty, frequency_penalty, seed, stop } = given
  return withoutNulls({
    maxOutputTokens: max_completion_tokens ?? max_tokens,
    temperature,
    topP: top_p,
    presencePenalty: presence_penalty,
    frequencyPenalty: frequency_penalty,
    seed,
    stopSequences: typeof stop === 'string' ? [stop] : stop,
  })
}

function formatOf(given: Body['response_format']) {
  if (!given || given.type === 'text') return {}
  if (given.type === 'json_object') return { responseFormat: { type: 'json' as const } }
  const { name, description, schema } = given.json_schema
  return { responseFormat: { type: 'json' as const, ...withoutNulls({ name, description, schema }) } }
}

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const

export function reasoningOf(effort: string | null | undefined) {
  if (effort == null) return {}
  const reasoning = EFFORTS.find((one) => one === effort)
  if (!reasoning) throw new NotServed(`the effort of reasoning is one of ${EFFORTS.join(', ')}`)
  return { reasoning }
}

function promptOf(messages: Body['messages']): LanguageModelV4Prompt {
  const growing = new GrowingPrompt()
  for (const one of messages) {
    switch (one.role) {
      case 'system':
      case 'developer':
        growing.add({ role: 'system', content: plain(one.content) })
        break
      case 'user':
        growing.add({ role: 'user', content: userParts(one.content) })
        break
      case 'assistant': {
        const said = plain(one.content ?? '')
        const calls = (one.tool_calls ?? []).map(({ id, function: { name, arguments: input } }) => ({
          type: 'tool-call' as const,
          toolCallId: id,
          toolName: name,
          input: inputOf(input),
        }))
        growing.add({ role: 'assistant', content: [] })
        growing.addToAssistant([...(said === '' ? [] : [{ type: 'text' as const, text: said }]), ...calls])
        break
      }
      case 'tool':
        growing.addResult({ id: one.tool_call_id, text: plain(one.content) })
    }
  }
  return growing.prompt
}

function userParts(given: Content) {
  if (typeof given === 'string') return [{ type: 'text' as const, text: given }]
  return given.map((one) => {
    if (one.type === 'text') return { type: 'text' as const, text: one.text ?? '' }
    if (one.type === 'image_url' && one.image_url)
      return filePart(typeof one.image_url === 'string' ? one.image_url : one.image_url.url, 'image/*')
    throw new NotServed(`content of the type ${one.type} is not taken: text and image_url are`)
  })
}

const chunkOf = ({ id, at, model }: Pick<WholeAnswer, 'id' | 'at' | 'model'>, object: string) => ({
  id: `chatcmpl-${id}`,
  object,
  created: at,
  model,
  service_tier: 'default',
  system_fingerprint: null,
})

const messageOf = ({ text: said, calls }: WholeAnswer) => ({
  role: 'assistant',
  content: said === '' && calls.length > 0 ? null : said,
  refusal: null,
  annotations: [],
  ...(calls.length > 0 && {
    tool_calls: calls.map(({ id, name, input }) => ({ id, type: 'function', function: { name, arguments: input } })),
  }),
})

const FINISHES: Readonly<Record<string, string>> = { length: 'length', 'content-filter': 'content_filter', 'tool-calls': 'tool_calls' }
const finishOf = (finish: string): string => FINISHES[finish] ?? 'stop'

const usageOf = ({ input_tokens, output_tokens }: Pick<WholeAnswer, 'input_tokens' | 'output_tokens'>) => ({
  prompt_tokens: input_tokens,
  completion_tokens: output_tokens,
  total_tokens: input_tokens + output_tokens,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
})

export function openaiFailure({ status, message, is_budget = false }: AnswerFailure): object {
  const type = is_budget
    ? 'insufficient_quota'
    : status === 429
      ? 'rate_limit_error'
      : status >= 500
        ? 'server_error'
        : 'invalid_request_error'
  const code = is_budget ? 'insufficient_quota' : (CODES[status] ?? null)
  return { error: { message, type, param: null, code } }
}

const CODES: Readonly<Record<number, string>> = { 401: 'invalid_api_key', 429: 'rate_limit_exceeded', 404: 'not_found' }
