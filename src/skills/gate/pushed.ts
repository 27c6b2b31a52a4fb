import { matchesScope } from '../../contract/settings/scope-pattern.ts'
import type { Manifest } from '../manifest/manifest.ts'

/** Limits of the skills that came from the control plane; docs/control-plane.md. */
export type PushedVariables = {
  REFLEX_CONTROL_PLANE_SCOPES?: string | undefined
  REFLEX_CONTROL_PLANE_TOOLS?: string | undefined
  REFLEX_CONTROL_PLANE_APPROVAL?: string | undefined
}
type Skill = Pick<Manifest, 'id' | 'version' | 'plan'>

const toolsOf = ({ plan }: Skill): string[] => [...new Set([...plan.steps, ...plan.compensation].map(({ tool }) => tool))]

/** Without the variable everything is listed. */
function isListed(said: string | undefined, name: string): boolean {
  const patterns = said?.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()])) ?? ['*']
  return patterns.some((pattern) => matchesScope(pattern, name))
}

/** Why a skill of the control plane may not run in a scope; null if it may. */
export function pushRefusal(variables: PushedVariables, scope: string, skill: Skill): string | null {
  if (!isListed(variables.REFLEX_CONTROL_PLANE_SCOPES, scope))
    return `REFLEX_CONTROL_PLANE_SCOPES of this deployment does not list the scope ${scope}`
  const tool = toolsOf(skill).find((name) => !isListed(variables.REFLEX_CONTROL_PLANE_TOOLS, name))
  return tool === undefined ? null : `it uses ${tool}, which REFLEX_CONTROL_PLANE_TOOLS of this deployment does not list`
}

/**
 * Why a person here must approve a run; null if nobody must. A word that is none of the three asks,
 * too: a mistake opens nothing.
 */
export function pushApproval(
  { REFLEX_CONTROL_PLANE_APPROVAL: mode = 'effects' }: PushedVariables,
  skill: Skill,
  onlyReads: (tool: string) => boolean,
): string | null {
  if (mode === 'never') return null
  const acting = toolsOf(skill).filter((tool) => !onlyReads(tool))
  if (acting.length > 0) return `it came from the control plane, and ${acting.join(', ')} may have effects`
  return mode === 'effects' ? null : 'it came from the control plane'
}
