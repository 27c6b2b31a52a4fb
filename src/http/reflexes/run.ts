import { createRoute, z } from '@hono/zod-openapi'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../reflexes/reflex-context.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { reflexAt, reflexPath } from './path.ts'
import { jsonObject, reflexRun } from './schemas.ts'

const run = createRoute({
  method: 'post',
  path: '/v1/reflexes/{ref}/run',
  operationId: 'runReflex',
  tags: ['Reflexes'],
  summary: 'Run a reflex without acting',
  description:
    'On a context of yours: what it names takes the place of the same field of a sample context, which has them all. What a reflex sees is at most 64 kB. Whatever its code does, this ' +
    'answers. The body may be left out.',
  ...guard({ roles: ['viewer'], body: 'optional' }),
  request: {
    params: reflexPath,
    body: jsonRequest(z.strictObject({ context: jsonObject.default({}) }), {
      context: { event: { type: 'ws.message', content: 'hello' } },
    }),
  },
  responses: { 200: json(reflexRun, 'What came of it.'), ...problems(400, 404, 413, 415) },
})

export const reflexRunRoutes = resource().openapi(run, async (c) => {
  const { context } = c.req.valid('json')
  const program = await reflexAt(c.env.DB, c.req.valid('param').ref)
  return c.json(runReflex(isolateSandbox(), program, { ...sampleContext, ...context }), 200)
})
