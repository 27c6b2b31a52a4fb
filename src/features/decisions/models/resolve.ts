import type { Experimental_DecisionModelV4 as DecisionModel } from '@ai-sdk/provider'
import { messageOf } from '../../../base/error-text.ts'
import { ModelMisconfigured } from '../../../models/model-errors.ts'
import { OfflineDecisionModel } from './offline.ts'
import { overHttp, overWorkersAI, SystemOneModel } from './system-one.ts'

type DecisionEnv = { AI?: Ai; REFLEX_DECISION_MODEL?: string; SYSTEM_ONE_URL?: string; SYSTEM_ONE_API_KEY?: string }

const WORKERS_AI = 'workers-ai/'
const SYSTEM_ONE = 'system-one'
const FORMS =
  'A decision model is one of: "offline" (by shared words, no network); "workers-ai/MODEL" (needs the AI binding), such as ' +
  '"workers-ai/@cf/cloudflare/clef-flash"; "system-one/MODEL" (needs SYSTEM_ONE_URL and SYSTEM_ONE_API_KEY), such as ' +
  '"system-one/pplx-decider-v1.2"; "system-one", which takes the model that a request names. ' +
  "The deployment's is the variable REFLEX_DECISION_MODEL, under [vars] in wrangler.toml."

export const decisionModelName = ({ REFLEX_DECISION_MODEL = 'offline' }: DecisionEnv): string => REFLEX_DECISION_MODEL

/** The full name of the model to ask; `asked` is the name in a request. */
export function fullName(name: string, asked: string | undefined): string {
  if (name !== SYSTEM_ONE) return name
  return asked === undefined ? name : `${SYSTEM_ONE}/${asked}`
}

/** The reason why the deployment's decision model cannot be used; null if it can, or is unset. */
export function decisionModelProblem(env: DecisionEnv): string | null {
  const name = env.REFLEX_DECISION_MODEL
  if (!name) return null
  try {
    // A request names the model, for which all else must be there.
    resolveDecisionModel(fullName(name, 'any'), env)
    return null
  } catch (error) {
    return messageOf(error)
  }
}

/** Throws ModelMisconfigured, which tells an operator what to set where. */
export function resolveDecisionModel(name: string, env: DecisionEnv): DecisionModel {
  if (name === 'offline') return new OfflineDecisionModel()
  if (name === SYSTEM_ONE) throw unusable(name, 'the request names no model.')
  if (name.startsWith(WORKERS_AI)) return workersAI(name, env)
  if (name.startsWith(`${SYSTEM_ONE}/`)) return systemOne(name, env)
  throw unusable(name, 'the name has none of the known forms.')
}

function workersAI(name: string, { AI }: DecisionEnv): DecisionModel {
  const model = name.slice(WORKERS_AI.length)
  if (!model.includes('/')) throw unusable(name, 'a model of Workers AI has a name such as "@cf/cloudflare/clef-flash".')
  if (!AI) throw unusable(name, 'the AI binding is missing. Add [ai] with binding = "AI" to wrangler.toml; it has no local mode.')
  return new SystemOneModel({ modelId: model, provider: 'workers-ai', send: overWorkersAI(AI, model) })
}

function systemOne(name: string, { SYSTEM_ONE_URL: url, SYSTEM_ONE_API_KEY: key }: DecisionEnv): DecisionModel {
  if (!url) throw unusable(name, 'the variable SYSTEM_ONE_URL is missing: the URL of the decisions endpoint, with its path.')
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw unusable(name, 'the value of the variable SYSTEM_ONE_URL is no http or https URL.')
  if (!key) throw unusable(name, 'the secret SYSTEM_ONE_API_KEY is missing. Run `wrangler secret put SYSTEM_ONE_API_KEY`.')
  const modelId = name.slice(SYSTEM_ONE.length + 1)
  return new SystemOneModel({ modelId, provider: SYSTEM_ONE, send: overHttp(url, key) })
}

const unusable = (name: string, what: string): ModelMisconfigured =>
  new ModelMisconfigured(`The decision model "${name}" can't be used: ${what} ${FORMS}`)
