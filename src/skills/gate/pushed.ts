import { matchesScope } from '../../contract/principal.ts'
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
const patternsOf = (said = '*'): string[] => said.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))

const isListed = (patterns: readonly string[], name: string): boolean => patterns.some((pattern) => matchesScope(pattern, name))

/** A tool of a skill's plan that none of the patterns matches. */
export const unlistedTool = (skill: Skill, patterns: readonly string[]): string | undefined =>
  toolsOf(skill).find((tool) => !isListed(patterns, tool))

/** Why a skill of the control plane may not run in a scope; null if it may. */
export function pushRefusal(variables: PushedVariables, scope: string, skill: Skill): string | null {
  if (!isListed(patternsOf(variables.REFLEX_CONTROL_PLANE_SCOPES), scope))
    return `REFLEX_CONTROL_PLANE_SCOPES of this deployment does not list the scope ${scope}`
  const tool = unlistedTool(skill, patternsOf(variables.REFLEX_CONTROL_PLANE_TOOLS))
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
