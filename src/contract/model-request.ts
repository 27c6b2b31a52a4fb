import type { LanguageModelV4CallOptions, LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'

/** The options of a request that are JSON. */
type ModelOptions = Pick<
  LanguageModelV4CallOptions,
  | 'maxOutputTokens'
  | 'temperature'
  | 'topP'
  | 'topK'
  | 'presencePenalty'
  | 'frequencyPenalty'
  | 'stopSequences'
  | 'seed'
  | 'responseFormat'
  | 'toolChoice'
  | 'reasoning'
  | 'providerOptions'
>
/** A request to a model in the form of the AI SDK, whatever provider's form it came in. */
export type ModelRequest = { prompt: LanguageModelV4Prompt; tools: LanguageModelV4FunctionTool[]; options: ModelOptions }
/** The same, by the hashes of its parts: each message is kept once. */
export type RequestParts = { prompt: string[]; tools: string; options: ModelOptions }

/** The model that a request names, with the key of its caller, who pays. It is kept nowhere. */
export type BehindModel = { name: string; key: string }
