import { agents as deployed } from '../../src/agents/index.ts'
import { perceivingAgent, testAgent } from './test-agents.ts'

export const agents = [testAgent, perceivingAgent, ...deployed]
