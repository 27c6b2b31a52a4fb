import { deploymentHider } from '../../base/secrets.ts'
import type { AgentRegistry } from '../../agent/registry.ts'
import type { Env } from '../../env.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { cleanerOf, type ReplayHost } from '../../replay/source.ts'
import { deploymentMask } from '../../traces/keyed-hash.ts'

/** The code of this deployment, for a replay. */
export const hostOf = (env: Env, agents: AgentRegistry): ReplayHost => ({
  agents,
  sandbox: isolateSandbox,
  cleaner: cleanerOf((value) => deploymentHider(env).value(value), deploymentMask(env)),
})
