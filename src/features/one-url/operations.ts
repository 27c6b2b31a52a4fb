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
const rest = {
  headers,
  body: z.looseObject({}),
  takes: 'own',
  answers: { 200: [z.looseObject({}), "The answer in the provider's form; with `stream`, its events.", texts.events] },
  problems: [404, 502, 503, 504],
} as const
const HOW =
  'A client changes its base URL and its key. The request and the answer are recorded in one trace, whose id is in `x-reflex-trace`; ' +
  '`x-reflex-decided-by` names a reflex that answered without a model. Errors have the form of the provider. See docs/one-url.md.'

export const askOpenaiChat = declare('post /v1/openai/chat/completions', 'askOpenaiChat', 'Answer a chat completion of OpenAI', {
  description: HOW,
  ...rest,
  example: { model: 'gpt-5-mini', messages: [{ role: 'user', content: 'hello' }] },
})
