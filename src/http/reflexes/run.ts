import { createRoute, z } from '@hono/zod-openapi'
import { actionSchema } from '../../contract/action.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../reflexes/reflex-context.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { reflexAt, reflexPath } from '../artifacts/path.ts'
import { jsonObject } from './source.ts'

export const action = actionSchema.openapi('Action')

const reflexRun = z
  .object({
    action: action.nullable(),
    reason: z.enum(['fired', 'null', 'error', 'limit', 'invalid_action']),
    error: z.string().nullable(),
    fuel: z.int().meta({ description: 'Work done: deterministic for the same code and context.' }),
    duration_us: z.number().meta({ description: '0 where the clock does not advance during computation.' }),
  })
  .openapi('ReflexRun')

const run = createRoute({
  method: 'post',
  path: '/v1/reflexes/{ref}/run',
  operationId: 'runReflex',
  tags: ['Reflexes'],
  summary: 'Run a reflex without acting',
  description:
    'Fields of `context` override those of a complete sample context, of at most 64 kB in all. The call answers whatever the code does. The body is optional.',
  ...guard({ roles: ['viewer'], body: 'optional' }),
  request: {
    params: reflexPath,
    body: jsonRequest(z.strictObject({ context: jsonObject.default({}) }), {
      context: { event: { type: 'ws.message', content: 'hello' } },
    }),
  },
  responses: { 200: json(reflexRun, 'The result.'), ...problems(400, 404, 413, 415) },
})

export const reflexRunRoutes = resource().openapi(run, async (c) => {
  const { context } = c.req.valid('json')
  const program = await reflexAt(c.env.DB, c.req.valid('param').ref)
  return c.json(runReflex(isolateSandbox(), program, { ...sampleContext, ...context }), 200)
})
