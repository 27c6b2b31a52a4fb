import type { Context } from 'hono'
import { z } from 'zod'
import { Problem } from '../../../contract/problem.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { notFound, unavailable } from '../../../http/problems/refusals.ts'
import { modelName, modelProblem } from '../../../models/resolve-model.ts'
import { readResponse } from '../../../tools/response-body.ts'
import { callersKey, scopeOf } from './answer.ts'

const MOST_BYTES = 4 * 1024 * 1024
const PROVIDER_MS = 30_000

const model = z.looseObject({ id: z.string(), object: z.literal('model'), created: z.int(), owned_by: z.string() })
const list = z.looseObject({ data: z.array(model) })
type Model = z.infer<typeof model>

// Nothing is known of the release of a model.
const ofDeployment = (id: string): Model => ({ id, object: 'model', created: 0, owned_by: 'reflex' })
const ofAnthropic = ({ id, created }: Model) => ({
  type: 'model',
  id,
  display_name: id,
  created_at: new Date(created * 1000).toISOString(),
})

/** The model that answers in the scope, whatever a request names; for a caller's own key, all. */
async function modelsOf(c: Context<AuthEnv>): Promise<Model[]> {
  const [scope, key] = [scopeOf(c, {}), callersKey(c)]
  if (key !== undefined) return listedFor(c, key)
  const { settings } = await c.env.SCOPE.getByName(scope).state()
  return [ofDeployment(modelName(c.env, settings))]
}

/** The models that the provider lists for this key, which is kept nowhere. */
async function listedFor({ env }: Context<AuthEnv>, key: string): Promise<Model[]> {
  const wrong = modelProblem('openai-compatible/any', { ...env, OPENAI_COMPATIBLE_API_KEY: key })
  if (wrong !== null) throw unavailable(wrong)
  const url = `${env.OPENAI_COMPATIBLE_BASE_URL?.replace(/\/+$/, '')}/models`
  // A redirect could take the key to another host.
  const asked = { headers: { authorization: `Bearer ${key}` }, redirect: 'manual', signal: AbortSignal.timeout(PROVIDER_MS) } as const
  try {
    const response = await fetch(url, asked)
    if (!response.ok) throw failed(response.status < 400 ? 502 : response.status, `The provider answered with HTTP ${response.status}.`)
    return list.parse(await readResponse(response, MOST_BYTES)).data
  } catch (error) {
    throw error instanceof Problem ? error : failed(502, 'The provider gave no list of models.')
  }
}

const failed = (status: number, detail: string): Problem =>
  new Problem({ status, type: 'urn:reflex:problem:model-failed', title: 'Not answered', detail })

async function demandModel(c: Context<AuthEnv>): Promise<Model> {
  const [models, asked] = [await modelsOf(c), c.req.param('model')]
  const found = models.find(({ id }) => id === asked)
  if (found) return found
  const [only, ...others] = models
  throw notFound(only && others.length === 0 ? `The model ${asked} does not answer here: ${only.id} does.` : `There is no model ${asked}.`)
}

export const openaiModels = async (c: Context<AuthEnv>) => c.json({ object: 'list', data: await modelsOf(c) }, 200)
export const openaiModel = async (c: Context<AuthEnv>) => c.json(await demandModel(c), 200)

export async function anthropicModels(c: Context<AuthEnv>) {
  const models = await modelsOf(c)
  const [first_id, last_id] = [models[0]?.id ?? null, models.at(-1)?.id ?? null]
  return c.json({ data: models.map(ofAnthropic), has_more: false, first_id, last_id }, 200)
}
export const anthropicModel = async (c: Context<AuthEnv>) => c.json(ofAnthropic(await demandModel(c)), 200)
