import { agents as deployed } from '../../src/agents/index.ts'
import { greeter } from './guide/greeter.ts'
import { triage } from './guide/triage.ts'
import { chainedAgent, doorkeeper, perceivingAgent, testAgent } from './test-agents.ts'

export const agents = [testAgent, perceivingAgent, chainedAgent, { ...greeter, offline: [doorkeeper] }, triage, ...deployed]
