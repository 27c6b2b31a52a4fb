import type { Feature } from '../../feature.ts'
import { followControlPlane } from './follow.ts'
import { controlPlaneRoutes } from './http/routes.ts'
import { controlPlaneReport } from './http/control-plane.ts'
import { policyOf } from './scope/control-plane.ts'
import * as tables from './store/tables.ts'
import { forgetTelemetry } from './store/telemetry.ts'

/** A deployment whose skills and policy others follow, and those that follow it. */
export const controlPlane = {
  name: 'control-plane',
  inScope: (scope) => {
    const policy = policyOf(scope)
    return policy ? { name: 'control-plane', policy } : null
  },
  routes: () => [controlPlaneRoutes],
  tables,
  health: async (env) => ({ control_plane: await controlPlaneReport(env) }),
  scheduled: followControlPlane,
  forgets: [{ name: 'telemetry', forget: forgetTelemetry }],
} satisfies Feature
