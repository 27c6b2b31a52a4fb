import { builtInEvents, eventUnion, type EventSchema } from '../core/event.ts'
import { decisionAsked } from '../contract/decision-asked.ts'
import { approvalEnded } from '../contract/approval-event.ts'
import { modelAsked } from '../contract/model-asked.ts'
import { namedTypes } from '../core/decision-context.ts'
import { matchesScope, overlaps } from '../contract/principal.ts'
import type { Agent, AgentRegistry } from './define-agent.ts'
import { prompted } from './prompted.ts'

export type { AgentRegistry } from './define-agent.ts'

/**
 * The agents and event types of a deployment. Throws if two agents clash or a filter names an
 * unknown type.
 */
export function buildRegistry(listed: readonly Agent[]): AgentRegistry {
  // It serves the scopes that no other agent serves, so it is always there.
  const agents = listed.includes(prompted) ? listed : [...listed, prompted]
  demandNamesOfTheirOwn(agents)
  const defined = schemasOf(agents)
  const eventTypes: readonly string[] = defined.map(({ schema }) => typeOf(schema))
  for (const { name, filters } of agents) demandKnownTypes(name, filters, eventTypes)

  return {
    agents,
    eventTypes,
    eventSchema: eventUnion([...builtInEvents, ...defined.slice(builtInEvents.length).map(({ schema }) => schema)]),
    agentOf: (scope, name) =>
      agents.find((agent) => agent.name === name) ??
      agents.find((agent) => agent !== prompted && agent.scopes.some((pattern) => matchesScope(pattern, scope))) ??
      prompted,
  }
}

/**
 * The agents that serve scopes of a pattern by their own patterns: the first that matches serves a
 * scope. A scope may name another one in its settings.
 */
export function servingAgents(agents: readonly Agent[], pattern: string): Agent[] {
  const others = agents.filter((agent) => agent !== prompted)
  const last = others.findIndex(({ scopes }) => scopes.some((own) => matchesScope(own, pattern)))
  const reached = last === -1 ? [...others, prompted] : others.slice(0, last + 1)
  return reached.filter(({ scopes }) => scopes.some((own) => overlaps(own, pattern)))
}

type Defined = { by: string; schema: EventSchema }

const typeOf = (schema: EventSchema): string => schema.shape.type.value

function demandNamesOfTheirOwn(agents: readonly Agent[]): void {
  for (const [index, { name, scopes }] of agents.entries()) {
    const first = agents.slice(0, index).find((other) => other.name === name)
    if (first === undefined) continue
    const reserved = name === prompted.name ? ' It is the name of the built-in agent.' : ''
    const whose = `one serves ${first.scopes.join(', ')}, the other ${scopes.join(', ')}`
    throw new Error(`Two agents are called "${name}": ${whose}.${reserved} Give one of them another name.`)
  }
}

/** Each type once, built-in types first. Agents that share a type list the same schema. */
function schemasOf(agents: readonly Agent[]): Defined[] {
  const defined: Defined[] = [...builtInEvents, decisionAsked, approvalEnded, modelAsked].map((schema) => ({ by: '', schema }))
  for (const { name, events = [] } of agents)
    for (const schema of events) {
      const type = typeOf(schema)
      const earlier = defined.find((one) => typeOf(one.schema) === type)
      if (earlier?.by === '')
        throw new Error(`Agent "${name}" defines the event type ${type}, which is built in. Choose another name for the type.`)
      if (earlier && earlier.schema !== schema)
        throw new Error(
          `Event type ${type} is in \`events\` of two agents, "${earlier.by}" and "${name}", with two schemas. ` +
            'Define it once, export it, and list the same schema in both.',
        )
      if (!earlier) defined.push({ by: name, schema })
    }
  return defined
}

function demandKnownTypes(agent: string, filters: Agent['filters'], known: readonly string[]): void {
  const unknown = filters.flatMap(namedTypes).find((type) => !known.includes(type))
  if (unknown === undefined) return
  throw new Error(
    `Agent "${agent}" has a typeFilter for the event type ${unknown}, which does not exist. There are: ${known.join(', ')}. ` +
      'Correct its name, or list its schema in `events`.',
  )
}
