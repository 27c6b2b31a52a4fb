import type { SQL } from 'drizzle-orm'
import type { SkillVersion } from '../../contract/skill.ts'
import { skillId, skillVersion } from '../../skills/manifest/names.ts'
import { findSkill } from '../../store/skills.ts'
import { refPath, type Ref } from '../artifacts/version-path.ts'
import { notFound } from '../problems/refusals.ts'

export const skillPath = refPath({
  kind: 'skill',
  without: 'the newest active version, or the newest where none is active',
  id: skillId,
  version: skillVersion,
})

/** Of those that `visible` holds of; all unless given. */
export async function skillAt(db: D1Database, { id, version }: Ref<string>, visible?: SQL): Promise<SkillVersion> {
  const found = await findSkill(db, id, version, visible)
  if (!found) throw notFound(`There is no skill ${version === undefined ? id : `${id}@${version}`}.`)
  return found
}
