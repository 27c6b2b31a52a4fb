import { z } from '@hono/zod-openapi'
import { coversScope } from '../../../contract/principal.ts'
import { shownCertificate } from '../contract/certificate.ts'
import { why } from '../evidence/certificate.ts'
import { mergeMetrics, presentMetrics, type ReflexMetrics } from '../../../reflexes/metrics.ts'
import { certificatesOf } from '../store/certificates.ts'
import { metricsOf } from '../store/reflex-metrics.ts'
import { guard, json, problems, resource, routes, scopePath } from '../../../http/describe/describe.ts'
import { whole } from '../../../contract/paging.ts'
import { reflexMetrics } from '../../../contract/reports/reflex-report.ts'
import { reflexAt, reflexPath } from '../../../http/artifacts/path.ts'
import { storeOf } from '../../../store/store.ts'

const route = routes('Reflexes')
const version = z.int()

const ofReflex = route('get /v1/reflexes/{ref}/metrics', 'getReflexMetrics', 'Get the metrics of a reflex', {
  description: 'By version and by scope, for the scopes that the key covers. With `id@version`, only that version. Updated within seconds.',
  ...guard({ roles: ['viewer'] }),
  request: { params: reflexPath },
  responses: {
    200: json(
      z.object({
        id: z.string(),
        versions: z.array(reflexMetrics.extend({ version })),
        scopes: z.array(reflexMetrics.extend({ scope: z.string(), version })),
        total: reflexMetrics,
      }),
      'Newest versions first.',
    ),
    ...problems(400, 404),
  },
})

const proofs = route('get /v1/certificates', 'listCertificates', 'List the certificates of a reflex or a decision model', {
  description:
    'The evidence for its versions in the scopes that the key covers, last reported first. Updated within seconds. A decision model is named as in the log: `decision:NAME`.',
  ...guard({ roles: ['viewer'] }),
  request: { query: z.object({ id: z.string().min(1).max(128).describe('The id of a reflex, or `decision:NAME`.') }) },
  responses: { 200: json(whole(shownCertificate.extend({ scope: z.string(), version })), 'All of them.'), ...problems(400) },
})

const ofScope = route('get /v1/scopes/{scope}/metrics', 'getScopeMetrics', "Get the metrics of a scope's reflexes", {
  description: 'Current values, together with the counters of the scope.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath },
  responses: {
    200: json(
      z.object({
        counters: z.record(z.string(), z.number()),
        reflexes: z.array(reflexMetrics.extend({ reflex_id: z.string(), version, proof: shownCertificate.nullable() })),
      }),
      'The metrics.',
    ),
    ...problems(400),
  },
})

export const reflexMetricsRoutes = resource()
  .openapi(ofReflex, async (c) => {
    const { ref } = c.req.valid('param')
    const { id } = (await reflexAt(storeOf(c.env), ref, c.var.principal)).version
    const rows = (await metricsOf(storeOf(c.env), id)).filter(
      (row) => coversScope(c.var.principal, row.scope) && (ref.version === undefined || row.version === ref.version),
    )
    const byVersion = [...Map.groupBy(rows, (row) => row.version)].sort(([one], [other]) => other - one)
    const versions = byVersion.map(([version, of]) => ({ version, ...merged(of) }))
    const scopes = rows.map(({ scope, version, metrics }) => ({ scope, version, ...presentMetrics(metrics) }))
    return c.json({ id, versions, scopes, total: merged(rows) }, 200)
  })
  .openapi(proofs, async (c) => {
    const found = (await certificatesOf(storeOf(c.env), c.req.valid('query').id)).filter(({ scope }) => coversScope(c.var.principal, scope))
    return c.json({ items: found.map((proof) => ({ ...proof, why: why(proof.certificate) })), next_cursor: null }, 200)
  })
  .openapi(ofScope, async (c) => {
    const { counters, reflexes } = await c.env.SCOPE.getByName(c.var.scope).metrics()
    return c.json(
      {
        counters,
        reflexes: reflexes.map(({ metrics, certificate, ...of }) => {
          const proof = certificate && { certificate, why: why(certificate) }
          return { ...of, ...presentMetrics(metrics), proof }
        }),
      },
      200,
    )
  })

const merged = (rows: readonly { metrics: ReflexMetrics }[]) => presentMetrics(mergeMetrics(rows.map(({ metrics }) => metrics)))
