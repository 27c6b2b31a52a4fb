import { alarmsByClock } from './clock.ts'
import { setUpOf } from './set-ups.ts'
import type { AgentRegistry } from '../src/agent/define-agent.ts'
import type { Env } from '../src/env.ts'
import { features } from '../src/features/index.ts'
import { ScopeObject } from '../src/engine/scope.ts'

/** A scope by the clock of the tests. A test may have set its agent. */
export class TestedScope extends ScopeObject {
  constructor(context: DurableObjectState, env: Env, agents: AgentRegistry) {
    alarmsByClock(context.storage)
    const own = setUpOf(context.id.name ?? '')
    super(context, { ...env, ...own?.env }, { agents: own?.agents ?? agents, features })
  }
}
