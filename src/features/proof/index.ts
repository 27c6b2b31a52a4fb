import type { Feature } from '../../feature.ts'
import { reflexMetricsRoutes } from './http/metrics.ts'
import { judge } from './scope/feedback.ts'
import { proofInScope, proofOf } from './scope/in-scope.ts'
import { forgetCertificates } from '../../store/artifacts/certificates.ts'
import { forgetReflexMetrics, METRICS, sortReflexMetrics } from '../../store/artifacts/reflex-metrics.ts'
import { metricsInScope } from './operations/metrics.ts'
import type { Refused, Result } from '../../base/result.ts'
import type { AuditedDecision, Feedback } from '../../contract/feedback.ts'

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /** A person's judgement of the decision on an event. `by` is a name. */
    judge(event_id: string, feedback: Feedback, by: string): Promise<Result<{ judged: AuditedDecision }, Refused<'unknown' | 'undecided'>>>
  }
}

/** Certificates: the proof that a reflex decides as the slow path would. */
export const proof = {
  name: 'proof',
  inScope: proofInScope,
  calls: { judge: async (scope, event_id, feedback, by) => judge({ ...scope, ...proofOf(scope) }, event_id, feedback, by) },
  operations: [metricsInScope],
  routes: () => [reflexMetricsRoutes],
  packs: { name: METRICS, sort: sortReflexMetrics },
  forgets: [
    { name: 'metrics', kept: 'a year', forget: forgetReflexMetrics },
    { name: 'certificates', kept: 'a year', forget: forgetCertificates },
  ],
} satisfies Feature
