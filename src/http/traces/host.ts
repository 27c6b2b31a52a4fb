import { deploymentHider } from '../../base/secrets.ts'
import type { AgentRegistry } from '../../agent/registry.ts'
import type { Env } from '../../env.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import { cleanerOf, type ReplayHost } from '../../replay/source.ts'
import { deploymentMask } from '../../traces/keyed-hash.ts'
import { plainMask } from '../../traces/redact.ts'

/** About 20 s of computing. The reflexes of 10,000 events usually take a tenth of it. */
const FUEL_PER_REPLAY = 4_000_000_000

/**
 * The code of this deployment, for a replay. Values that foreign code chooses get no keyed hash:
 * its caller could compare it with those of the log, and so guess what they hide.
 */
export const hostOf = (env: Env, agents: AgentRegistry, is_foreign: boolean): ReplayHost => ({
  agents,
  sandbox: isolateSandbox,
  fuel: { left: FUEL_PER_REPLAY },
  cleaner: cleanerOf((value) => deploymentHider(env).value(value), is_foreign ? plainMask : deploymentMask(env)),
})
