import type { LanguageModelV4 } from '@ai-sdk/provider'
import { gateway, type LanguageModel, wrapLanguageModel } from 'ai'

/**
 * The model as the AI SDK would resolve it: a name is one of the default provider's, and older
 * versions are brought up to the newest.
 */
export function languageModel(model: LanguageModel): LanguageModelV4 {
  if (typeof model === 'string') return upToDate((globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway).languageModel(model))
  return upToDate(model)
}

const upToDate = (model: Exclude<LanguageModel, string>): LanguageModelV4 =>
  model.specificationVersion === 'v4' ? model : wrapLanguageModel({ model, middleware: {} })
