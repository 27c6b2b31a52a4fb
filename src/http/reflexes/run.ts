import { z } from '@hono/zod-openapi'
import { reflexRun } from '../../contract/reflex.ts'
import { evaluation } from '../../contract/reports/reflex-report.ts'
import { scopeName } from '../../core/event.ts'
import { evaluateRecordings } from '../../reflexes/evaluation.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { sampleContext } from '../../reflexes/reflex-context.ts'
import { runReflex } from '../../reflexes/run-reflex.ts'
import { withComputing } from '../auth/computing.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { demandCoverage } from '../problems/refusals.ts'
import { reflexActingRoutes } from './acting.ts'
import { reflexAt, reflexPath } from '../artifacts/path.ts'
import { readable } from '../artifacts/sealed.ts'
import { storeOf } from '../../store/store.ts'

const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const
const LONGEST_S = 30 * UNITS.d
const TEXT = /^([1-9]\d{0,6})([smhd])$/
const tooLong = 'a window is 30 days at most'

/** The time to look back, in ms: `10m`, `24h`, `7d`, or `{"last_s": 600}`. */
const timeWindow = z
  .union(
    [
      z
        .string()
        .regex(TEXT)
        .transform((text) => {
          const [, count = '', unit = 's'] = TEXT.exec(text) ?? []
          return Number(count) * UNITS[unit as keyof typeof UNITS]
        }),
      z.strictObject({ last_s: z.number().positive() }).transform(({ last_s }) => last_s),
    ],
    'a window is a text such as 10m, 24h or 7d, or {"last_s": 600}',
  )
  .refine((seconds) => seconds <= LONGEST_S, tooLong)
  .transform((seconds) => seconds * 1000)

/** Recordings per page. The scope limits a page by its bytes, too. */
const PAGE = 100
const route = routes('Reflexes')

const run = route('post /v1/reflexes/{ref}/run', 'runReflex', 'Run a reflex without acting', {
  description:
    'Runs it on a context of yours. Fields that you leave out come from a complete sample context. The context is limited to 64 kB. Faulty code is contained and ' +
    'reported in the response. The body is optional.',
  ...guard({ roles: ['viewer'], body: 'optional' }),
  request: {
    params: reflexPath,
    body: jsonRequest(z.strictObject({ context: z.record(z.string(), z.unknown()).default({}) }), {
      context: { event: { type: 'ws.message', content: 'hello' } },
    }),
  },
  responses: { 200: json(reflexRun, 'The result of the run.'), ...problems(400, 404, 413, 415) },
})

const evaluate = route('post /v1/reflexes/{ref}/evaluate', 'evaluateReflex', 'Evaluate a reflex on the history of a scope', {
  description:
    'Runs it on the contexts of a scope within a window, without acting, and compares its actions with the decisions made at the time. A `window` is `10m`, `24h`, `7d` or `{"last_s": 600}`, ' +
    'at most 30 days.',
  ...guard({ roles: ['viewer'], body: 'json' }),
  request: {
    params: reflexPath,
    body: jsonRequest(z.strictObject({ scope: scopeName, window: timeWindow }), { scope: 'default', window: '24h' }),
  },
  responses: { 200: json(evaluation, 'The evaluation.'), ...problems(400, 404, 413, 415) },
})

export const reflexRunRoutes = resource()
  .route('/', reflexActingRoutes)
  .openapi(run, async (c) => {
    const { context } = c.req.valid('json')
    const program = readable('reflex', await reflexAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal))
    const ran = await withComputing(c.var.principal, (computing) => {
      const run = runReflex(isolateSandbox(), program, { ...sampleContext, ...context })
      computing.spend(run.fuel)
      return run
    })
    return c.json(ran, 200)
  })
  .openapi(evaluate, async (c) => {
    const { scope, window } = c.req.valid('json')
    demandCoverage(c.var.principal, [{ scope }])
    const program = readable('reflex', await reflexAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal))
    const recorded = c.env.SCOPE.getByName(scope)
    const since = Date.now() - window
    const report = await withComputing(c.var.principal, (computing) =>
      evaluateRecordings({
        sandbox: isolateSandbox(),
        program,
        identify: (calls) => recorded.identify(calls),
        read: (after) => recorded.recordings({ since, after, limit: PAGE }),
        computing,
      }),
    )
    return c.json(report, 200)
  })
