import { resource } from '../../../http/describe/describe.ts'
import { policyRoutes } from './policy.ts'
import { promotionRoutes } from './promotions.ts'
import { syncRoutes } from './sync.ts'
import { telemetryRoutes } from './telemetry.ts'

/** The routes that other deployments call. */
export const controlPlaneRoutes = resource()
  .route('/', policyRoutes)
  .route('/', syncRoutes)
  .route('/', promotionRoutes)
  .route('/', telemetryRoutes)
