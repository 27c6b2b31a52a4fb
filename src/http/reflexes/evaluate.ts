import { createRoute, z } from '@hono/zod-openapi'
import { scopeName } from '../../core/event.ts'
import { evaluateRecordings } from '../../reflexes/evaluate-recordings.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { evaluation } from './evaluation-schema.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { reflexAt, reflexPath } from './path.ts'
import { demandCoverage } from '../problems/refusals.ts'
import { timeWindow } from './time-window.ts'

/** At most; the scope ends a page by its bytes, too. */
const PAGE = 100

const evaluate = createRoute({
  method: 'post',
  path: '/v1/reflexes/{ref}/evaluate',
  operationId: 'evaluateReflex',
  tags: ['Reflexes'],
  summary: 'Evaluate a reflex on what a scope has seen',
  description:
    'Runs it on the contexts of a scope within a window, acting on nothing, and holds what it would have done against what was decided. A `window` is `10m`, `24h`, `7d` or `{"last_s": 600}`, ' +
    '30 days at most.',
  ...guard({ roles: ['viewer'], body: 'json' }),
  request: {
    params: reflexPath,
    body: jsonRequest(z.strictObject({ scope: scopeName, window: timeWindow }), { scope: 'default', window: '24h' }),
  },
  responses: { 200: json(evaluation, 'The evaluation.'), ...problems(400, 404, 413, 415) },
})

export const reflexEvaluateRoutes = resource().openapi(evaluate, async (c) => {
  const { scope, window } = c.req.valid('json')
  demandCoverage(c.var.principal, [{ scope }])
  const program = await reflexAt(c.env.DB, c.req.valid('param').ref)
  const recorded = c.env.SCOPE.getByName(scope)
  const since = Date.now() - window
  const report = await evaluateRecordings({
    sandbox: isolateSandbox(),
    program,
    identify: (calls) => recorded.identify(calls),
    read: (after) => recorded.recordings({ since, after, limit: PAGE }),
  })
  return c.json(report, 200)
})
