import type { Agent } from '../../src/agent/define-agent.ts'
import { agents as deployed } from '../../src/agents/index.ts'
import { greeter } from './guide/greeter.ts'
import { triage } from './guide/triage.ts'
import { chainedAgent, doorkeeper, perceivingAgent, testAgent } from './test-agents.ts'

const own: readonly Agent[] = [testAgent, perceivingAgent, chainedAgent, { ...greeter, offline: [doorkeeper] }, triage]

/** A deployment that has the guides' agents itself, or others of their names or event types, must not clash with those here. */
const clashes = ({ name, events = [] }: Agent): boolean =>
  own.some((other) => other.name === name || (other.events ?? []).some((one) => events.some((mine) => typeOf(mine) === typeOf(one))))
const typeOf = ({ shape }: NonNullable<Agent['events']>[number]): string => shape.type.value

export const agents = [...own, ...deployed.filter((agent) => !clashes(agent))]
