import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { createWorkersAI } from 'workers-ai-provider'
import { ModelMisconfigured, ModelFailed } from './model-errors.ts'
import { OfflineModel, type OfflineRule } from './offline-model.ts'
import { wrapLanguageModel } from 'ai'
import { boundedFetch, withLimits } from './limit-answer.ts'
import { modelFaultOf } from '../base/faults.ts'
import { watchStream } from './watch-stream.ts'

type FaultOptions = {
  now: () => number
  /** Takes secrets out of the provider's text. */
  hide: (text: string) => string
}

/** Fails with ModelFailed if it is the provider's fault. An aborted call fails with its reason. */
export function withFaults(model: LanguageModelV4, options: FaultOptions): LanguageModelV4 {
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v4',
      wrapGenerate: async ({ doGenerate, params }) => {
        try {
          return await doGenerate()
        } catch (error) {
          throw failureOf(error, params.abortSignal, options)
        }
      },
      wrapStream: async ({ doStream, params }) => {
        const failure = (error: unknown) => failureOf(error, params.abortSignal, options)
        try {
          const result = await doStream()
          // A provider may also fail in the middle of its answer, or report an error as a part.
          const onPart = (part: LanguageModelV4StreamPart) => (part.type === 'error' ? { ...part, error: failure(part.error) } : part)
          return { ...result, stream: watchStream(result.stream, { onPart, failure }) }
        } catch (error) {
          throw failure(error)
        }
      },
    },
  })
}

function failureOf(error: unknown, signal: AbortSignal | undefined, { now, hide }: FaultOptions): unknown {
  if (signal?.aborted) return error
  const fault = modelFaultOf(error, { now: now(), asked: true })
  return fault ? new ModelFailed({ ...fault, detail: hide(fault.detail) }, error) : error
}

type ModelEnv = { AI?: Ai; OPENAI_COMPATIBLE_BASE_URL?: string; OPENAI_COMPATIBLE_API_KEY?: string }

const WORKERS_AI = 'workers-ai/'
const OPENAI_COMPATIBLE = 'openai-compatible/'

const FORMS =
  'A model is one of: "offline" (by rules, no network); "workers-ai/MODEL" (needs the AI binding), such as ' +
  '"workers-ai/@cf/openai/gpt-oss-20b"; "openai-compatible/MODEL" (needs OPENAI_COMPATIBLE_BASE_URL and OPENAI_COMPATIBLE_API_KEY), such as ' +
  '"openai-compatible/gpt-5-mini". The deployment\'s model is the variable REFLEX_MODEL, under [vars] in wrangler.toml.'

/** The scope's own model, or the deployment's. */
export const modelName = ({ REFLEX_MODEL = 'offline' }: { REFLEX_MODEL?: string }, settings?: { model?: string | undefined }): string =>
  settings?.model ?? REFLEX_MODEL

/** Describes what is wrong with a model's name or configuration, without secrets; or null. */
export function modelProblem(name: string, env: ModelEnv): string | null {
  try {
    resolveModel(name, env)
    return null
  } catch (error) {
    if (error instanceof ModelMisconfigured) return error.message
    throw error
  }
}

/** The model of that name. Throws ModelMisconfigured, which tells an operator what to set where. */
export function resolveModel(name: string, env: ModelEnv, rules: readonly OfflineRule[] = []): LanguageModelV4 {
  if (name === 'offline') return new OfflineModel(rules)
  if (name.startsWith(WORKERS_AI)) return workersAI(name, name.slice(WORKERS_AI.length), env)
  if (name.startsWith(OPENAI_COMPATIBLE)) return openAICompatible(name, name.slice(OPENAI_COMPATIBLE.length), env)
  throw unusable(name, 'the name has none of the known forms.')
}

function workersAI(name: string, model: string, { AI }: ModelEnv): LanguageModelV4 {
  if (!model.includes('/')) throw unusable(name, 'a model of Workers AI has a name such as "@cf/openai/gpt-oss-20b".')
  if (!AI) throw unusable(name, 'the AI binding is missing. Add [ai] with binding = "AI" to wrangler.toml; it has no local mode.')
  return withLimits(createWorkersAI({ binding: AI })(model))
}

function openAICompatible(name: string, model: string, env: ModelEnv): LanguageModelV4 {
  const { OPENAI_COMPATIBLE_BASE_URL: baseURL, OPENAI_COMPATIBLE_API_KEY: apiKey } = env
  if (model === '') throw unusable(name, 'the model is missing after "openai-compatible/".')
  if (!baseURL) {
    const where = 'Set it under [vars] in wrangler.toml, for example OPENAI_COMPATIBLE_BASE_URL = "https://api.openai.com/v1".'
    throw unusable(name, `the variable OPENAI_COMPATIBLE_BASE_URL is missing. ${where}`)
  }
  if (!/^https?:$/.test(URL.parse(baseURL)?.protocol ?? '')) {
    throw unusable(name, 'the value of the variable OPENAI_COMPATIBLE_BASE_URL is no http or https URL.')
  }
  if (!apiKey) {
    const where = 'Run `wrangler secret put OPENAI_COMPATIBLE_API_KEY`, or put it into .dev.vars for the local server'
    throw unusable(name, `the secret OPENAI_COMPATIBLE_API_KEY is missing. ${where}; a server that asks for no key takes any value.`)
  }
  const made = MADE.get(env)
  if (made && made.name === name && made.baseURL === baseURL && made.apiKey === apiKey) return made.resolved
  // Without these options, streams report no tokens and the model never sees the schema.
  const options = { name: 'openai-compatible', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true, fetch: boundedFetch }
  const resolved = withLimits(createOpenAICompatible(options)(model))
  MADE.set(env, { name, baseURL, apiKey, resolved })
  return resolved
}

/** The newest model of each environment: making one builds the schemas of its answers. */
const MADE = new WeakMap<ModelEnv, { name: string; baseURL: string; apiKey: string; resolved: LanguageModelV4 }>()

function unusable(name: string, what: string): ModelMisconfigured {
  return new ModelMisconfigured(`The model "${name}" can't be used: ${what} ${FORMS}`)
}
