import { resource, serve } from '../../../http/describe/operation.ts'
import { askOpenaiChat } from '../operations.ts'
import { answer, conversation } from './answer.ts'
import { openaiChat, openaiFailure } from './openai-chat.ts'
import { providerAccess } from './provider-access.ts'

/** The keys of clients, before those of other routes are read. */
export const providerRoutes = resource()
providerRoutes.use('/v1/openai/*', ...providerAccess(openaiFailure))

export const answerRoutes = resource().openapiRoutes([serve(askOpenaiChat, (c) => answer(c, openaiChat), conversation)])
