import { createRoute, z } from '@hono/zod-openapi'
import { coversScope } from '../../contract/principal.ts'
import { mergeMetrics, presentMetrics, type ReflexMetrics } from '../../reflexes/metrics.ts'
import { metricsOf } from '../../store/reflex-metrics.ts'
import { guard, json, problems, resource, scopePath } from '../describe/describe.ts'
import { reflexAt, reflexPath } from '../artifacts/path.ts'

const count = z.int()
export const percentiles = z.object({ p50: count, p90: count, p99: count, max: z.number() })

const presentedMetrics = {
  runs: count.meta({ description: 'Including those in shadow.' }),
  fired: count,
  passed: z
    .object({ null: count, error: count, limit: count, invalid_action: count })
    .meta({ description: 'Runs that did not fire, by reason.' }),
  held_back: count.meta({ description: 'Fires that a cooldown or a rate held back.' }),
  acted: count,
  failed: count.meta({ description: 'Actions whose effect failed.' }),
  shadow: z.object({ runs: count, fired: count, agreed: count, disagreed: count, undecided: count }),
  agreement: z.number().nullable().meta({ description: 'The share of compared fires in shadow that matched the decision.' }),
  overruled: count,
  model_calls_saved: z.number(),
  tokens_saved: z.number(),
  cost_saved_usd: z.number(),
  fuel: percentiles,
  duration_us: percentiles,
}

const totals = z.object(presentedMetrics).openapi('ReflexMetrics')

const tags = ['Reflexes']
const version = z.int()

const ofReflex = createRoute({
  method: 'get',
  path: '/v1/reflexes/{ref}/metrics',
  operationId: 'getReflexMetrics',
  tags,
  summary: "Get a reflex's metrics",
  description:
    'In the scopes that the key covers, by version and by scope. With `id@version`, only that version. Scopes report within seconds.',
  ...guard({ roles: ['viewer'] }),
  request: { params: reflexPath },
  responses: {
    200: json(
      z.object({
        id: z.string(),
        versions: z.array(z.object({ version, ...presentedMetrics })),
        scopes: z.array(z.object({ scope: z.string(), version, ...presentedMetrics })),
        total: totals,
      }),
      'Newest versions first.',
    ),
    ...problems(400, 404),
  },
})

const ofScope = createRoute({
  method: 'get',
  path: '/v1/scopes/{scope}/metrics',
  operationId: 'getScopeMetrics',
  tags,
  summary: 'Get the metrics of a scope and its reflexes',
  description: 'Current values from the scope, with its own counters.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath },
  responses: {
    200: json(
      z.object({
        counters: z.record(z.string(), z.number()),
        reflexes: z.array(z.object({ reflex_id: z.string(), version, ...presentedMetrics })),
      }),
      'The metrics.',
    ),
    ...problems(400),
  },
})

export const reflexMetricsRoutes = resource()
  .openapi(ofReflex, async (c) => {
    const { ref } = c.req.valid('param')
    const { id } = await reflexAt(c.env.DB, ref)
    const rows = (await metricsOf(c.env.DB, id)).filter(
      (row) => coversScope(c.var.principal, row.scope) && (ref.version === undefined || row.version === ref.version),
    )
    const byVersion = [...Map.groupBy(rows, (row) => row.version)].sort(([one], [other]) => other - one)
    const versions = byVersion.map(([version, of]) => ({ version, ...merged(of) }))
    const scopes = rows.map(({ scope, version, metrics }) => ({ scope, version, ...presentMetrics(metrics) }))
    return c.json({ id, versions, scopes, total: merged(rows) }, 200)
  })
  .openapi(ofScope, async (c) => {
    const { counters, reflexes } = await c.env.SCOPE.getByName(c.var.scope).metrics()
    return c.json({ counters, reflexes: reflexes.map(({ metrics, ...of }) => ({ ...of, ...presentMetrics(metrics) })) }, 200)
  })

const merged = (rows: readonly { metrics: ReflexMetrics }[]) => presentMetrics(mergeMetrics(rows.map(({ metrics }) => metrics)))
