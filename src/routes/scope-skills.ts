import type { Env } from '../bindings.ts'
import type { Settings } from '../protocol/settings.ts'
import type { Manifest } from '../skills/manifest.ts'
import { placeOf } from '../skills/place-of.ts'
import { SkillCopy } from '../skills/skill-copy.ts'
import { activeSkills } from '../store/active-skills.ts'

/** Of each skill that a scope may show the newest active version that fits where its agent works, by id, and the settings that say where. */
export async function skillsOf(env: Env, scope: string): Promise<{ settings: Settings; manifests: Manifest[] }> {
  const skills = new SkillCopy()
  const [{ settings }] = await Promise.all([
    env.SCOPE.getByName(scope).state(),
    skills.catchUp((since_revision) => activeSkills(env.DB, { scope, since_revision })),
  ])
  if (skills.unreadable.length > 0) {
    console.warn(JSON.stringify({ message: 'manifests that the schema no longer takes are left out', scope, skills: skills.unreadable }))
  }
  return { settings, manifests: skills.newestFor(placeOf(settings)).map(({ manifest }) => manifest) }
}
