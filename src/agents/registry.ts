import { builtInEvents, eventUnion, type EventSchema } from '../core/event.ts'
import { matchesScope } from '../protocol/scope-pattern.ts'
import type { Agent } from './define-agent.ts'
import { agents } from './index.ts'
import { prompted } from './prompted.ts'

/** The one that a scope's settings name, else the first whose pattern matches. */
export function agentOf(scope: string, name?: string): Agent {
  const named = agents.find((agent) => agent.name === name)
  return named ?? agents.find(({ scopes }) => scopes.some((pattern) => matchesScope(pattern, scope))) ?? prompted
}

const schemas: [EventSchema, ...EventSchema[]] = [...builtInEvents, ...agents.flatMap(({ events = [] }) => events)]

/** Every event type that this deployment knows. */
export const eventTypes: readonly string[] = schemas.map((schema) => schema.shape.type.value)

const twice = eventTypes.find((type, index) => eventTypes.indexOf(type) !== index)
if (twice !== undefined)
  throw new Error(`event type ${twice} is defined twice: two agents can share a type's schema only by one defining it`)

export const eventSchema = eventUnion(schemas)
