import type { Lanes } from '../effects/wiring.ts'
import { BlackboardLayers } from './blackboard-layers.ts'
import { handleRuns } from './run-jobs.ts'
import { SkillRuns } from './runs.ts'
import { SecretSettings } from './secret-settings.ts'
import { SkillCache } from './skill-cache.ts'
import { SkillViews } from './shown-skills.ts'
import { Skills } from './sessions.ts'

export type Skilled = Lanes & ReturnType<typeof composeSkills>

export function composeSkills(parts: Lanes) {
  const skill_cache = new SkillCache(parts)
  const runs = new SkillRuns(parts)
  const layers = new BlackboardLayers(parts)
  const skills = new Skills({ ...parts, skill_cache, runs, layers })
  handleRuns({ ...parts, skills, runs })
  const views = new SkillViews({ ...parts, skill_cache, layers, runs })
  return { skill_cache, secret_settings: new SecretSettings(skill_cache), runs, skills, views }
}
