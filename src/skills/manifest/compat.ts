import { matchesScope } from '../../contract/principal.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Compat, Manifest } from './manifest.ts'

/**
 * The environment of an agent. An unknown field is null or empty, and fits no skill that requires
 * it.
 */
export type Place = { env: readonly string[]; toolset: string | null; repo: string | null; project: string | null }

export const COMPAT_FIELDS = ['env', 'toolset', 'repo', 'project'] as const

export const isCompatible = (compat: Compat, place: Place): boolean => COMPAT_FIELDS.every((field) => fitsField(compat, place, field))

export function fitsField(compat: Compat, place: Place, field: keyof Place): boolean {
  const wanted = listOf(compat[field])
  const here = listOf(place[field])
  return wanted.length === 0 || (here.length > 0 && here.every((name) => wanted.includes(name)))
}

export function listOf(value: string | readonly string[] | null | undefined): readonly string[] {
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
