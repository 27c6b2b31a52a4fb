import type { Feature } from '../../feature.ts'
import { replayRoutes } from './http/routes.ts'

/** Decides again from a recording, as it was or with changes. */
export const replay: Feature = {
  name: 'replay',
  routes: () => [replayRoutes],
}
