import type { Context } from 'hono'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { notFound } from '../../../http/problems/refusals.ts'
import { modelName } from '../../../models/resolve-model.ts'
import { scopeOf } from './answer.ts'

/** The name of the model that answers in the scope, whatever name a request gives. */
async function modelOf(c: Context<AuthEnv>): Promise<string> {
  const { settings } = await c.env.SCOPE.getByName(scopeOf(c, {})).state()
  return modelName(c.env, settings)
}

async function demandModel(c: Context<AuthEnv>): Promise<string> {
  const [id, asked] = [await modelOf(c), c.req.param('model')]
  if (asked !== id) throw notFound(`The model ${asked} does not answer here: ${id} does.`)
  return id
}

// Nothing is known of the release of a model.
const ofOpenai = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'reflex' })
const ofAnthropic = (id: string) => ({ type: 'model', id, display_name: id, created_at: '1970-01-01T00:00:00Z' })

export const openaiModels = async (c: Context<AuthEnv>) => c.json({ object: 'list', data: [ofOpenai(await modelOf(c))] }, 200)
export const openaiModel = async (c: Context<AuthEnv>) => c.json(ofOpenai(await demandModel(c)), 200)

export async function anthropicModels(c: Context<AuthEnv>) {
  const id = await modelOf(c)
  return c.json({ data: [ofAnthropic(id)], has_more: false, first_id: id, last_id: id }, 200)
}
export const anthropicModel = async (c: Context<AuthEnv>) => c.json(ofAnthropic(await demandModel(c)), 200)
