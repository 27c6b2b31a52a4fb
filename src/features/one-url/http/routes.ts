import { resource, serve } from '../../../http/describe/operation.ts'
import * as operations from '../operations.ts'
import { answer, conversation } from './answer.ts'
import { anthropicFailure, anthropicMessages } from './anthropic-messages.ts'
import { anthropicModel, anthropicModels, openaiModel, openaiModels } from './models.ts'
import { openaiChat, openaiFailure } from './openai-chat.ts'
import { openaiResponses } from './openai-responses.ts'
import { providerAccess } from './provider-access.ts'

/** Before the platform asks for a key: clients send it in their own way. */
export const providerRoutes = resource()
providerRoutes.use('/v1/openai/*', ...providerAccess(openaiFailure))
providerRoutes.use('/v1/anthropic/*', ...providerAccess(anthropicFailure))

export const answerRoutes = resource().openapiRoutes([
  serve(operations.askOpenaiChat, (c) => answer(c, openaiChat), conversation),
  serve(operations.askOpenaiResponses, (c) => answer(c, openaiResponses), conversation),
  serve(operations.askAnthropic, (c) => answer(c, anthropicMessages), conversation),
  serve(operations.askAnthropicClient, (c) => answer(c, anthropicMessages), conversation),
  serve(operations.listOpenaiModels, openaiModels),
  serve(operations.getOpenaiModel, openaiModel),
  serve(operations.listAnthropicModels, anthropicModels),
  serve(operations.getAnthropicModel, anthropicModel),
  serve(operations.listAnthropicClientModels, anthropicModels),
  serve(operations.getAnthropicClientModel, anthropicModel),
])
