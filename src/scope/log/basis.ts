import type { Agent } from '../../agent/define-agent.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Env } from '../../env.ts'
import type { Unit } from '../storage/unit.ts'
import type { LogParts } from './log-parts.ts'

/** The basis of a scope's decisions. Entries name it by its hash. */
type Basis = { agent: { name: string; version: string | null }; deployment: string | null; settings: Settings }
type Parts = { env: Env; agent: () => Agent; settings: () => Settings; log_parts: LogParts }

/** Stores the basis in force, and returns its hash. */
export function basisOf({ env, agent, settings, log_parts }: Parts): (unit: Unit) => string {
  let current: Basis | undefined
  return (unit) => {
    const { name, version = null } = agent()
    if (current?.settings !== settings() || current.agent.name !== name)
      current = { agent: { name, version }, deployment: env.CF_VERSION_METADATA?.id ?? null, settings: settings() }
    return log_parts.put(unit, current)
  }
}
