import { TestedScope } from './tested-scope.ts'
import { buildRegistry } from '../src/agent/registry.ts'
import type { Env } from '../src/env.ts'
import { reflex } from '../src/package.ts'

/** The Worker of a project's tests. Its agents are those that `testScope` is given. */
const none = buildRegistry([])
export class Scope extends TestedScope {
  constructor(context: DurableObjectState, env: Env) {
    super(context, env, none)
  }
}

const worker = reflex({ agents: [] })
export const { Sweeper, GlobalKey, Learner, Ledger } = worker
export default worker.handlers
