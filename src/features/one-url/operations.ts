import { z } from 'zod'
import { operations, texts } from '../../contract/operation.ts'

const declare = operations({ tag: 'One URL', roles: ['publisher'] })
const headers = z.object({
  'x-reflex-scope': z.string().optional().describe('The scope. Unset: `user/NAME` by the user of the request, else `key/NAME`.'),
  'x-reflex-provider-key': z
    .string()
    .optional()
    .describe("The caller's key of the provider, which is passed on and kept nowhere, where the deployment allows it."),
})
const failure = z.looseObject({ error: z.looseObject({ message: z.string() }) })
const refusals = (...statuses: number[]) =>
  Object.fromEntries(statuses.map((status) => [status, [failure, 'An error in the form of the provider.'] as const]))
const rest = {
  headers,
  body: z.looseObject({}),
  takes: 'own',
  answers: { 200: [z.looseObject({}), "The answer in the provider's form; with `stream`, its events.", texts.events] },
  refusals: refusals(400, 401, 403, 404, 413, 415, 429, 500, 502, 503, 504),
} as const
const HOW =
  'A client changes its base URL and its key. The request and the answer are recorded in one trace, whose id is in `x-reflex-trace`; ' +
  '`x-reflex-decided-by` names a reflex that answered without a model. Errors have the form of the provider. See docs/one-url.md.'

export const askOpenaiChat = declare('post /v1/openai/chat/completions', 'askOpenaiChat', 'Answer a chat completion of OpenAI', {
  description: HOW,
  ...rest,
  example: { model: 'gpt-5-mini', messages: [{ role: 'user', content: 'hello' }] },
})

export const askOpenaiResponses = declare('post /v1/openai/responses', 'askOpenaiResponses', 'Answer a response of OpenAI', {
  description: `${HOW} No responses are stored: the input has the whole conversation.`,
  ...rest,
  example: { model: 'gpt-5-mini', input: 'hello' },
})

export const askAnthropic = declare('post /v1/anthropic/messages', 'askAnthropic', 'Answer a message of Anthropic', {
  description: HOW,
  ...rest,
  example: { model: 'claude-sonnet-4-5', max_tokens: 500, messages: [{ role: 'user', content: 'hello' }] },
})

/** Anthropic's own client adds `/v1` to its base URL; others have it there. */
export const askAnthropicClient = { ...askAnthropic, at: 'post /v1/anthropic/v1/messages', id: 'askAnthropicClient' } as const

const listing = {
  description:
    'The one model that answers in the scope, whatever name a request gives: its setting `model`, else `REFLEX_MODEL`. ' +
    "With `x-reflex-provider-key`, what the provider lists for the caller's own key.",
  headers,
  answers: { 200: [z.looseObject({}), "In the provider's form."] },
  refusals: refusals(400, 401, 403, 404, 429, 500, 502, 503),
} as const
const named = { ...listing, params: z.object({ model: z.string().describe('The name of a model that the list has.') }) } as const

export const listOpenaiModels = declare('get /v1/openai/models', 'listOpenaiModels', 'List models as OpenAI does', listing)
export const getOpenaiModel = declare('get /v1/openai/models/{model}', 'getOpenaiModel', 'Show a model as OpenAI does', named)
export const listAnthropicModels = declare('get /v1/anthropic/models', 'listAnthropicModels', 'List models as Anthropic does', listing)
export const getAnthropicModel = declare('get /v1/anthropic/models/{model}', 'getAnthropicModel', 'Show a model as Anthropic does', named)
export const listAnthropicClientModels = {
  ...listAnthropicModels,
  at: 'get /v1/anthropic/v1/models',
  id: 'listAnthropicClientModels',
} as const
export const getAnthropicClientModel = {
  ...getAnthropicModel,
  at: 'get /v1/anthropic/v1/models/{model}',
  id: 'getAnthropicClientModel',
} as const
