import type { Feature } from '../../feature.ts'
import { decisionRoutes } from './http/decisions.ts'

/** Decision models: they answer questions with probabilities, between reflexes and turns. */
export const decisions: Feature = {
  name: 'decisions',
  routes: () => [decisionRoutes],
}
