import { agents as deployed } from '../../src/agents/index.ts'
import { chainedAgent, perceivingAgent, testAgent } from './test-agents.ts'

export const agents = [testAgent, perceivingAgent, chainedAgent, ...deployed]
