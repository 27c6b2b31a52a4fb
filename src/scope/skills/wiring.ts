import type { WorkingMemory } from '../context/working-memory.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Alarm } from '../upkeep/alarm.ts'
import type { CountedParts } from '../turns/metered-model.ts'
import type { Database } from '../storage/database.ts'
import type { DoneKeys } from '../effects/done-keys.ts'
import type { EffectLane } from '../effects/effect-lane.ts'
import type { Guard } from '../upkeep/guard.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import type { Jobs } from '../jobs.ts'
import { BlackboardLayers } from './blackboard-layers.ts'
import { Decisions } from './decisions.ts'
import { ParkedRuns } from './approvals.ts'
import { handleRuns } from './run-jobs.ts'
import type { Outbox } from '../replication/outbox.ts'
import { SkillRuns } from './runs.ts'
import { SecretSettings } from './secret-settings.ts'
import { SkillCache } from './skill-cache.ts'
import { SkillViews } from './shown-skills.ts'
import { Skills } from './sessions.ts'

type Parts = CountedParts & {
  scope: string
  guard: Guard
  database: Database
  done_keys: DoneKeys
  outbox: Outbox
  effects: EffectLane
  jobs: Jobs
  toolbox: Toolbox
  alarm: Alarm
  memory: WorkingMemory
  settings: () => Settings
}

export function composeSkills(parts: Parts) {
  const shelf = new SkillCache(parts)
  const runs = new SkillRuns(parts)
  const parked = new ParkedRuns(parts)
  const layers = new BlackboardLayers(parts)
  const skills = new Skills({ ...parts, shelf, runs, parked, layers })
  handleRuns({ ...parts, skills, runs })
  const views = new SkillViews({ ...parts, shelf, layers, runs })
  const decisions = new Decisions({ ...parts, parked })
  return { shelf, secret_settings: new SecretSettings(shelf), runs, parked, skills, views, decisions }
}
