import type { Feature } from '../../feature.ts'
import { exportSpans } from './scope/span-export.ts'
import { traceRoutes } from './http/traces.ts'
import { find, list } from './operations/traces.ts'

/** Traces of what followed from an event, and their export as spans. */
export const traces: Feature = {
  name: 'traces',
  inScope: exportSpans,
  operations: [list, find],
  routes: () => [traceRoutes],
}
