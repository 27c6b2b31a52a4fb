import { deploymentHider } from '../../../base/secrets.ts'
import type { Computing } from '../../../base/computing.ts'
import type { AgentRegistry } from '../../../agent/registry.ts'
import type { Env } from '../../../env.ts'
import { isolateSandbox } from '../../../reflexes/isolate-sandbox.ts'
import { BoundedSandbox } from '../bounded-sandbox.ts'
import { cleanerOf, type ReplayHost } from '../source.ts'
import { deploymentMask } from '../../../traces/keyed-hash.ts'
import { plainMask } from '../../../traces/redact.ts'

/**
 * The code of this deployment, for a replay. Values that foreign code chooses get no keyed hash:
 * its caller could compare it with the hashes of the log, and so guess what they hide.
 */
export function hostOf(env: Env, { agents, computing, is_foreign }: Replaying): ReplayHost {
  const sandbox = new BoundedSandbox(isolateSandbox(), computing)
  const cleaner = cleanerOf((value) => deploymentHider(env).value(value), is_foreign ? plainMask : deploymentMask(env))
  return { agents, computing, sandbox: () => sandbox, cleaner }
}

type Replaying = { agents: AgentRegistry; computing: Computing; is_foreign: boolean }
