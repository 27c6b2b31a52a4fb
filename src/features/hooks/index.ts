import type { Feature } from '../../feature.ts'
import { hookDeliveryRoutes, hookRoutes } from './http/hooks.ts'

/** Addresses that take the webhooks of other systems, as events. */
export const hooks: Feature = {
  name: 'hooks',
  open: [hookDeliveryRoutes],
  routes: () => [hookRoutes],
}
