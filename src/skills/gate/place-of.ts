import type { Settings } from '../../contract/settings.ts'
import type { Place } from './compat.ts'

/** Where a scope's agent works, by its settings. What they do not name is not known, and fits no skill that asks for it. */
export function placeOf({ project, env, toolset, repo }: Partial<Pick<Settings, 'project' | 'env' | 'toolset' | 'repo'>>): Place {
  const envs = typeof env === 'string' ? [env] : (env ?? [])
  return { project: project ?? null, env: envs, toolset: toolset ?? null, repo: repo ?? null }
}
