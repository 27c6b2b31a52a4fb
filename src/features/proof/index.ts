import type { Feature } from '../../feature.ts'
import { reflexMetricsRoutes } from './http/metrics.ts'
import { judge } from './scope/feedback.ts'
import { proofInScope, proofOf } from './scope/in-scope.ts'
import { forgetCertificates } from './store/certificates.ts'
import { forgetReflexMetrics } from '../../store/artifacts/reflex-metrics.ts'
import { metricsInScope } from './operations/metrics.ts'

/** Certificates: the proof that a reflex decides as the slow path would. */
export const proof: Feature = {
  name: 'proof',
  inScope: proofInScope,
  calls: { judge: async (scope, event_id, feedback, by) => judge({ ...scope, ...proofOf(scope) }, event_id, feedback, by) },
  operations: [metricsInScope],
  routes: () => [reflexMetricsRoutes],
  forgets: [
    { name: 'metrics', kept: 'a year', forget: forgetReflexMetrics },
    { name: 'certificates', kept: 'a year', forget: forgetCertificates },
  ],
}
