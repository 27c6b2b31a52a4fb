import type { Lanes } from '../effects/wiring.ts'
import { BlackboardLayers } from './blackboard-layers.ts'
import { ParkedRuns } from '../../features/approvals/scope/approvals.ts'
import { ApprovalDecisions } from '../../features/approvals/scope/approval-decisions.ts'
import { handleRuns } from './run-jobs.ts'
import { SkillRuns } from './runs.ts'
import { SecretSettings } from './secret-settings.ts'
import { SkillCache } from './skill-cache.ts'
import { SkillViews } from './shown-skills.ts'
import { Skills } from './sessions.ts'

export type Skilled = Lanes & ReturnType<typeof composeSkills>

export function composeSkills(parts: Lanes) {
  const skill_cache = new SkillCache(parts)
  const runs = new SkillRuns({
    ...parts,
    count: (unit, { skill_id: id, version }) => parts.licence_use.fired(unit, skill_cache.goodsOf({ id, version })),
  })
  const parked_runs = new ParkedRuns(parts)
  const layers = new BlackboardLayers(parts)
  const skills = new Skills({ ...parts, skill_cache, runs, parked_runs, layers })
  handleRuns({ ...parts, skills, runs })
  const views = new SkillViews({ ...parts, skill_cache, layers, runs })
  const approval_decisions = new ApprovalDecisions({ ...parts, parked_runs })
  return { skill_cache, secret_settings: new SecretSettings(skill_cache), runs, parked_runs, skills, views, approval_decisions }
}
