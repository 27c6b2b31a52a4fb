import type { Agent } from '../../agents/define-agent.ts'
import type { Env } from '../../bindings.ts'
import type { Settings } from '../../protocol/settings.ts'
import type { Alarm } from '../alarm.ts'
import type { Database } from '../database.ts'
import type { Effects } from '../effects.ts'
import type { Log } from '../log.ts'
import type { Toolbox } from '../toolbox.ts'
import type { UnitOfWork } from '../unit-of-work.ts'
import { Decisions } from './decisions.ts'
import { ParkedRuns } from './parked-runs.ts'
import { SkillRuns } from './runs.ts'
import { Shelf } from './shelf.ts'
import { Skills } from './skills.ts'

type Parts = {
  scope: string
  env: Env
  database: Database
  unit: UnitOfWork
  log: Log
  effects: Effects
  toolbox: Toolbox
  alarm: Alarm
  agent: () => Agent
  settings: () => Settings
  now: () => number
}

export function composeSkills(parts: Parts) {
  const shelf = new Shelf(parts)
  const runs = new SkillRuns(parts.database, parts.unit)
  const parked = new ParkedRuns({ ...parts, requested_by: () => `agent:${parts.agent().name}` })
  const skills = new Skills({ ...parts, shelf, runs, parked })
  const decisions = new Decisions({ ...parts, look: () => skills.look() })
  return { shelf, skillRuns: runs, parked, skills, decisions }
}
