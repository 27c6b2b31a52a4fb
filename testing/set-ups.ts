import { buildRegistry } from '../src/agent/registry.ts'
import type { Agent, AgentRegistry } from '../src/agent/define-agent.ts'
import type { Env } from '../src/env.ts'
import type { OfflineRule } from '../src/models/offline-model.ts'

/** The agents and the variables of one test's scope. */
export type SetUp = { agents: AgentRegistry; env: Partial<Env> }

const setUps = new Map<string, SetUp>()

/** Every agent gets the script as its offline model, the built-in one included. */
export function setUp(scope: string, listed: readonly Agent[], { script, env }: { script: OfflineRule; env: Partial<Env> }): SetUp {
  const registry = buildRegistry(listed)
  const scripted = new Map(registry.agents.map((agent) => [agent, { ...agent, offline: [script, ...(agent.offline ?? [])] }]))
  const scriptOf = (agent: Agent): Agent => scripted.get(agent) ?? agent
  const agents = {
    ...registry,
    agents: [...scripted.values()],
    agentOf: (of: string, name?: string) => scriptOf(registry.agentOf(of, name)),
  }
  const set_up = { agents, env }
  setUps.set(scope, set_up)
  return set_up
}

export const setUpOf = (scope: string): SetUp | undefined => setUps.get(scope)
