import { createHash } from 'node:crypto'
import { canonicalJson } from '../base/json.ts'
import type { Act } from './reflex.ts'

export type SkillAct = Extract<Act, { act: 'run_skill' }>

/** `skill_id` may name a version. The inputs are hashed: an act stands in the log. */
export function skillAct(skill_id: string, inputs: Record<string, unknown>): SkillAct {
  const inputs_hash = createHash('sha256').update(canonicalJson(inputs)).digest('hex')
  return { act: 'run_skill', skill_id, inputs_hash }
}

/** An id without a version follows the skill: it is the same skill as any version of it. */
export function sameSkill(left: string, right: string): boolean {
  const [one, other] = [skillName(left), skillName(right)]
  if (one.id !== other.id) return false
  return one.version === undefined || other.version === undefined || one.version === other.version
}

/** `id@version` as its parts. */
export function skillName(written: string): { id: string; version: string | undefined } {
  const [id = '', version] = written.split('@', 2)
  return { id, version }
}
