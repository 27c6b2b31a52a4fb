import { matchesScope } from '../../contract/scope-pattern.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Compat, Manifest } from './manifest.ts'
import type { GateCheck, Need, Place, StageOutcome } from '../gate/decision.ts'

const FIELDS = ['env', 'toolset', 'repo', 'project'] as const

/**
 * Checks that a skill may run in this place. Fields that the skill does not name are not checked.
 */
export function compatOutcome({ compat }: Manifest, place: Place): StageOutcome {
  const checks: GateCheck[] = []
  const needs: Need[] = []
  for (const field of FIELDS) {
    const wanted = listOf(compat[field])
    if (wanted.length === 0) continue
    const passed = fitsField(compat, place, field)
    const detail = `the skill is for ${wanted.join(' or ')}; this is ${listOf(place[field]).join(' and ') || 'not known'}`
    checks.push({ check: `compat.${field}`, passed, detail })
    if (!passed) needs.push({ need: 'compat', field, message: `compat.${field}: ${detail}` })
  }
  return { checks, needs }
}

export const isCompatible = (compat: Compat, place: Place): boolean => FIELDS.every((field) => fitsField(compat, place, field))

function fitsField(compat: Compat, place: Place, field: keyof Place): boolean {
  const wanted = listOf(compat[field])
  const here = listOf(place[field])
  return wanted.length === 0 || (here.length > 0 && here.every((name) => wanted.includes(name)))
}

function listOf(value: string | readonly string[] | null | undefined): readonly string[] {
  if (value === null || value === undefined) return []
  return typeof value === 'string' ? [value] : value
}

type PlaceSettings = Partial<Pick<Settings, 'project' | 'toolset' | 'repo'> & { env: string | readonly string[] | undefined }>

/**
 * The place of a scope's agent, by its settings. An unknown field fits no skill that requires it.
 */
export function placeOf({ project, env, toolset, repo }: PlaceSettings): Place {
  return { project: project ?? null, env: listOf(env), toolset: toolset ?? null, repo: repo ?? null }
}

/** True if one of the patterns names the skill, or this version of it. */
export const isRefused = (patterns: readonly string[] = [], { id, version }: Pick<Manifest, 'id' | 'version'>): boolean =>
  patterns.some((pattern) => matchesScope(pattern, id) || matchesScope(pattern, `${id}@${version}`))
