import type { Feature } from '../../feature.ts'
import { replayRoutes } from './http/routes.ts'
import { replay as replayTrace } from './operations/replay.ts'

/** Decides again from a recording, as it was or with changes. */
export const replay = {
  name: 'replay',
  operations: [replayTrace],
  routes: () => [replayRoutes],
} satisfies Feature
