import type { ScopeFeature } from '../../../engine/feature.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import { SpanExport } from '../../../tools/span-export.ts'
import { otlpTargetOf } from '../../../traces/otlp-target.ts'

/** Exports the spans of a scope, if the deployment has a collector. */
export function exportSpans({ env, outbox, follower, ...parts }: Ground): ScopeFeature | null {
  const target = otlpTargetOf(env)
  if (!target) return null
  const spans = new SpanExport({ ...parts, target })
  outbox.source('spans', { send: async () => spans.start(), due: () => spans.due() })
  follower.add(spans)
  return {
    name: 'spans',
    state: () => ({ spans: spans.state }),
    reports: () => ({ spans_exported: spans.state.exported, spans_dropped: spans.state.dropped }),
  }
}
