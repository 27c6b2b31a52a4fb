import type { Feature } from '../../feature.ts'
import { exportSpans } from './scope/span-export.ts'
import { traceRoutes } from './http/traces.ts'
import { listActivity } from './operations/activity.ts'
import { find, list } from './operations/traces.ts'
import { activityRoutes } from './http/activity.ts'

/** Traces of what followed from an event, and their export as spans. */
export const traces = {
  name: 'traces',
  inScope: exportSpans,
  operations: [list, find, listActivity],
  routes: () => [traceRoutes, activityRoutes],
} satisfies Feature
