import type { Feature } from '../../feature.ts'
import { decisionRoutes } from './http/decisions.ts'
import { decisionModelProblem } from './models/resolve.ts'
import { decisionsInScope } from './scope/decisions.ts'

/** Decision models: they answer questions with probabilities, between reflexes and turns. */
export const decisions = {
  name: 'decisions',
  inScope: decisionsInScope,
  problem: decisionModelProblem,
  routes: () => [decisionRoutes],
} satisfies Feature
