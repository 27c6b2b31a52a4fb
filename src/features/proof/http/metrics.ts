import { coversScope } from '../../../contract/principal.ts'
import { certificates, metrics, metricsInScope } from '../operations/metrics.ts'
import { why } from '../../../evidence/certificate.ts'
import { mergeMetrics, presentMetrics, type ReflexMetrics } from '../../../reflexes/metrics.ts'
import { certificatesOf } from '../../../store/artifacts/certificates.ts'
import { metricsOf, sortMetricsNow } from '../../../store/artifacts/reflex-metrics.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { reflexAt } from '../../../http/artifacts/path.ts'
import { storeOf } from '../../../store/store.ts'

export const reflexMetricsRoutes = resource().openapiRoutes([
  serve(metrics, async (c, { params: { ref } }) => {
    const { id } = (await reflexAt(storeOf(c.env), ref, c.var.principal)).version
    await sortMetricsNow(storeOf(c.env))
    const rows = (await metricsOf(storeOf(c.env), id)).filter(
      (row) => coversScope(c.var.principal, row.scope) && (ref.version === undefined || row.version === ref.version),
    )
    const byVersion = [...Map.groupBy(rows, (row) => row.version)].sort(([one], [other]) => other - one)
    const versions = byVersion.map(([version, of]) => ({ version, ...merged(of) }))
    const scopes = rows.map(({ scope, version, metrics }) => ({ scope, version, ...presentMetrics(metrics) }))
    return { id, versions, scopes, total: merged(rows) }
  }),
  serve(certificates, async (c, { query: { id } }) => {
    const found = (await certificatesOf(storeOf(c.env), id)).filter(({ scope }) => coversScope(c.var.principal, scope))
    return { items: found.map((proof) => ({ ...proof, why: why(proof.certificate) })), next_cursor: null }
  }),
  serve(metricsInScope, async (c) => {
    const { counters, reflexes } = await c.env.SCOPE.getByName(c.var.scope).metrics()
    const shown = reflexes.map(({ metrics: own, certificate, ...of }) => {
      const proof = certificate && { certificate, why: why(certificate) }
      return { ...of, ...presentMetrics(own), proof }
    })
    return { counters, reflexes: shown }
  }),
])

const merged = (rows: readonly { metrics: ReflexMetrics }[]) => presentMetrics(mergeMetrics(rows.map(({ metrics }) => metrics)))
