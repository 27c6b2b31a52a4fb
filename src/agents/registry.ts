import { buildRegistry } from '../agent/registry.ts'
import { agents as listed } from './index.ts'

/** `agents`: those that are listed, and the built-in one. `eventTypes`: every type that this deployment knows. */
export const { agents, agentOf, eventTypes, eventSchema } = buildRegistry(listed)
