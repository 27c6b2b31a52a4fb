import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { ParseRequest } from '../plan/slots.ts'

type ParserModel = { model: LanguageModelV4 | undefined; name?: string; signal: AbortSignal | undefined }

/** Asks the model that a parser is pinned to, by its id or `name`. Throws for any other model. */
export async function askParser({ model, name, signal }: ParserModel, request: ParseRequest): Promise<string> {
  if (!model || (request.model !== model.modelId && request.model !== name)) {
    throw new Error(`the parser is pinned to the model ${request.model}, and no such model is here`)
  }
  const { content } = await model.doGenerate({
    prompt: [{ role: 'user', content: [{ type: 'text', text: request.prompt }] }],
    temperature: request.temperature,
    responseFormat: { type: 'json', name: 'slot', schema: request.schema },
    ...(signal ? { abortSignal: signal } : {}),
  })
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
