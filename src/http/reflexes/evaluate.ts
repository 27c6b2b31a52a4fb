import { createRoute, z } from '@hono/zod-openapi'
import { scopeName } from '../../core/event.ts'
import { evaluateRecordings } from '../../reflexes/evaluation.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { reflexAt, reflexPath } from '../artifacts/path.ts'
import { demandCoverage } from '../problems/refusals.ts'
import { percentiles } from './metrics.ts'
import { action } from './run.ts'
import { timeWindow } from './time-window.ts'

/** Upper bound; the scope limits a page by its bytes, too. */
const PAGE = 100

const count = z.int()
const act = z
  .discriminatedUnion('act', [
    z.object({ act: z.literal('call_tool'), tool: z.string(), idempotence_key: z.string().nullable(), arguments_hash: z.string() }),
    z.object({ act: z.literal('emit_event'), event_type: z.string() }),
    z.object({ act: z.literal('reply'), content: z.string() }),
    z.object({ act: z.literal('set_scratch'), key: z.string(), value: z.unknown() }),
    z.object({ act: z.literal('run_skill'), skill_id: z.string(), inputs_hash: z.string() }),
    z.object({ act: z.literal('other'), action_type: z.string() }),
  ])
  .openapi('Act', { description: 'A comparable act about an event.' })

const evaluation = z
  .object({
    contexts: z.object({ recorded: count, rebuilt: count, undecided: count }).meta({
      description: '`rebuilt`: not recorded at the time, so scratch, thinking and recent actions are empty. `undecided`: not decided yet.',
    }),
    fires: count,
    passes: z.object({ null: count, error: count, limit: count, invalid_action: count }),
    agreement: z
      .object({ agreed: count, disagreed: count, not_compared: count, rate: z.number().nullable() })
      .meta({ description: 'Fires compared with the recorded decision.' }),
    missed: count.meta({ description: 'Contexts where it returned null although an action was taken.' }),
    errors: z.array(z.object({ event_id: z.string(), message: z.string() })).meta({ description: 'The first five.' }),
    fuel: percentiles,
    disagreements: z.array(z.object({ event_id: z.string(), action, decided: z.array(act) })).meta({ description: 'The first five.' }),
    truncated: z.boolean().meta({ description: 'The limit of 5,000 contexts or 400,000,000 units of fuel was reached.' }),
  })
  .openapi('Evaluation')

const evaluate = createRoute({
  method: 'post',
  path: '/v1/reflexes/{ref}/evaluate',
  operationId: 'evaluateReflex',
  tags: ['Reflexes'],
  summary: 'Evaluate a reflex on what a scope has seen',
  description:
    'Runs it on the contexts of a scope within a window, without acting, and compares its actions with the decisions made then. A `window` is `10m`, `24h`, `7d` or `{"last_s": 600}`, ' +
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
