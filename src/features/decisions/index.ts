import type { Feature } from '../../feature.ts'
import { decisionRoutes } from './http/decisions.ts'
import { decisionsInScope } from './scope/in-scope.ts'

/** Decision models: they answer questions with probabilities, between reflexes and turns. */
export const decisions: Feature = {
  name: 'decisions',
  inScope: decisionsInScope,
  routes: () => [decisionRoutes],
}
