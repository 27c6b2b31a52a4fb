import { COMPAT_FIELDS, fitsField, listOf, type Place } from '../manifest/compat.ts'
import type { Manifest } from '../manifest/manifest.ts'
import type { GateCheck, Need, StageOutcome } from './decision.ts'

/**
 * Checks that a skill may run in this place. Fields that the skill does not name are not checked.
 */
export function compatOutcome({ compat }: Manifest, place: Place): StageOutcome {
  const checks: GateCheck[] = []
  const needs: Need[] = []
  for (const field of COMPAT_FIELDS) {
    const wanted = listOf(compat[field])
    if (wanted.length === 0) continue
    const passed = fitsField(compat, place, field)
    const detail = `the skill is for ${wanted.join(' or ')}; this is ${listOf(place[field]).join(' and ') || 'not known'}`
    checks.push({ check: `compat.${field}`, passed, detail })
    if (!passed) needs.push({ need: 'compat', field, message: `compat.${field}: ${detail}` })
  }
  return { checks, needs }
}
