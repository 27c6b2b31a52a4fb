import type { Resource } from '../../contract/operation.ts'
import { policy, promotions } from './operations/promotions.ts'

export const resources: readonly Resource[] = [promotions, policy]
