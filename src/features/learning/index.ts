import type { Feature } from '../../feature.ts'
import { learnAgain } from './events/learning.ts'
import { learnRoutes } from './http/runs.ts'
import { forgetRuns } from './store/learn-runs.ts'

/** Reflexes and skills that are learned from what the slow path decided. */
export const learning: Feature = {
  name: 'learning',
  routes: () => [learnRoutes],
  sweeps: [{ name: 'starting to learn', run: learnAgain }],
  forgets: [{ name: 'learning runs', kept: 'a year', forget: forgetRuns }],
}
