import type { AgentRegistry } from '../agent/registry.ts'
import { deploymentHider } from '../base/secrets.ts'
import type { Env } from '../env.ts'
import { type Collaborators, compose } from './wiring.ts'
import { install, type FeatureInScope } from './installed.ts'
import { Database } from '../kernel/unit.ts'
import { isLaid, laySchema } from './storage/lay-schema.ts'

export type Of = { agents: AgentRegistry; features: readonly FeatureInScope[] }

/** Builds a scope from its storage, which stays empty until the first write. */
export function openScope(context: DurableObjectState, env: Env, of: Of): Collaborators {
  const { storage, id } = context
  const hider = deploymentHider(env)
  const laid = isLaid(storage)
  if (laid) laySchema(storage)
  const lay = () => {
    laySchema(storage)
    database.write('scope', scope)
    database.write('created_at', created_at)
  }
  const database: Database = new Database(storage, { laid, lay }, hider)
  // The name is stored: an alarm may wake the object without it.
  const scope = database.read<string | null>('scope', null) ?? id.name ?? ''
  const created_at = database.read('created_at', Date.now())
  const parts = compose({ context, env, scope, created_at, database, hider, agents: of.agents })
  install(parts, of.features)
  return parts
}
