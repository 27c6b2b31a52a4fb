import type { Lanes } from '../effects/wiring.ts'
import { composePolicy } from '../../features/control-plane/scope/control-plane.ts'
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
  const shelf = new SkillCache(parts)
  const runs = new SkillRuns({
    ...parts,
    count: (unit, { skill_id: id, version }) => parts.licence_use.fired(unit, shelf.goodsOf({ id, version })),
  })
  const parked = new ParkedRuns(parts)
  const layers = new BlackboardLayers(parts)
  const skills = new Skills({ ...parts, shelf, runs, parked, layers, policy: composePolicy(parts, shelf) })
  handleRuns({ ...parts, skills, runs })
  const views = new SkillViews({ ...parts, shelf, layers, runs })
  const approval_decisions = new ApprovalDecisions({ ...parts, parked })
  return { shelf, secret_settings: new SecretSettings(shelf), runs, parked, skills, views, approval_decisions }
}
