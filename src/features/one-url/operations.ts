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
const rest = {
  headers,
  body: z.looseObject({}),
  takes: 'own',
  answers: { 200: [z.looseObject({}), "The answer in the provider's form; with `stream`, its events.", texts.events] },
  refusals: Object.fromEntries(
    [400, 401, 403, 404, 413, 415, 429, 500, 502, 503, 504].map((status) => [
      status,
      [failure, 'An error in the form of the provider.'] as const,
    ]),
  ),
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
