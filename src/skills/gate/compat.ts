import type { Compat, Manifest } from '../manifest/manifest.ts'
import type { Check, Need, StageOutcome } from './decision.ts'

/** Where an agent runs. What is null or empty is not known, and fits no skill that asks for it. */
export type Place = { env: readonly string[]; toolset: string | null; repo: string | null; project: string | null }

const FIELDS = ['env', 'toolset', 'repo', 'project'] as const

/** Whether a skill may run there at all. What it does not name, it does not ask for; of several envs each must be one of its own. */
export function compatOutcome({ compat }: Manifest, place: Place): StageOutcome {
  const checks: Check[] = []
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
