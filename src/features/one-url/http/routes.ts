import { resource, serve } from '../../../http/describe/operation.ts'
import { askAnthropic, askAnthropicClient, askOpenaiChat, askOpenaiResponses } from '../operations.ts'
import { answer, conversation } from './answer.ts'
import { anthropicFailure, anthropicMessages } from './anthropic-messages.ts'
import { openaiChat, openaiFailure } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import { providerAccess } from './provider-access.ts'

/** Before the platform asks for a key: clients send it in their own way. */
export const providerRoutes = resource()
providerRoutes.use('/v1/openai/*', ...providerAccess(openaiFailure))
providerRoutes.use('/v1/anthropic/*', ...providerAccess(anthropicFailure))

export const answerRoutes = resource().openapiRoutes([
  serve(askOpenaiChat, (c) => answer(c, openaiChat), conversation),
  serve(askOpenaiResponses, (c) => answer(c, openaiResponses), conversation),
  serve(askAnthropic, (c) => answer(c, anthropicMessages), conversation),
  serve(askAnthropicClient, (c) => answer(c, anthropicMessages), conversation),
])
