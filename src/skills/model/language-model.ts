import type { LanguageModelV4 } from '@ai-sdk/provider'
import { gateway, type LanguageModel, wrapLanguageModel } from 'ai'

/** Resolves a model as the AI SDK does: names by the default provider, older versions wrapped. */
export function languageModel(model: LanguageModel): LanguageModelV4 {
  if (typeof model === 'string') return upToDate((globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway).languageModel(model))
  return upToDate(model)
}

const upToDate = (model: Exclude<LanguageModel, string>): LanguageModelV4 =>
  model.specificationVersion === 'v4' ? model : wrapLanguageModel({ model, middleware: {} })
