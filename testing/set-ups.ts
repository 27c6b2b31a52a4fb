import { buildRegistry } from '../src/agent/registry.ts'
import type { Agent, AgentRegistry } from '../src/agent/define-agent.ts'
import type { Env } from '../src/env.ts'

/** The agents and the variables of one test's scope. */
type SetUp = { agents: AgentRegistry; env: Partial<Env> }

const setUps = new Map<string, SetUp>()

export function setUp(scope: string, listed: readonly Agent[], env: Partial<Env>): AgentRegistry {
  const agents = buildRegistry(listed)
  setUps.set(scope, { agents, env })
  return agents
}

export const setUpOf = (scope: string): SetUp | undefined => setUps.get(scope)
