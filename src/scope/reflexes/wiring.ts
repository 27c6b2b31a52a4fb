import type { AgentRegistry } from '../../agent/registry.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { Env } from '../../env.ts'
import type { Event } from '../../core/event.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import type { SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { Alarm } from '../alarm.ts'
import type { Budget } from '../turns/budget.ts'
import type { Counters } from '../counters.ts'
import type { Database } from '../database.ts'
import type { EffectLane } from '../effects/effect-lane.ts'
import type { Guard } from '../guard.ts'
import type { Log } from '../log.ts'
import type { Settlement } from '../inbox/settlement.ts'
import type { SessionFor } from '../skills/sessions.ts'
import { DeclaredTools } from '../effects/declared-tools.ts'
import { Toolbox } from '../effects/toolbox.ts'
import type { Turns } from '../turns/turn-lane.ts'
import type { WorkingMemory } from '../context/working-memory.ts'
import type { Configuration } from '../settings/change.ts'
import type { Jobs } from '../jobs.ts'
import type { ActionKeys } from './action-keys.ts'
import { Actions } from './actions.ts'
import { Chain } from './chain.ts'
import { HeldEvents } from '../inbox/held-events.ts'
import { Programs } from './versions.ts'
import { Proving } from './shadow.ts'
import { Recordings } from './recordings.ts'
import type { Records } from './stats.ts'
import { ReflexOutcome } from './reflex-outcome.ts'
import { Situation } from './reflex-context.ts'
import { OwnedReflexes } from './owned.ts'
import { reflexTools } from './tools.ts'
import { Upkeep } from './sync.ts'
import { Windows } from './event-counts.ts'
import type { Unit, UnitOfWork } from '../unit.ts'

type Parts = {
  scope: string
  env: Env
  agents: AgentRegistry
  guard: Guard
  database: Database
  records: Records
  log: Log
  memory: WorkingMemory
  counters: Counters
  settlement: Settlement
  effects: EffectLane
  jobs: Jobs
  action_keys: ActionKeys
  budget: Budget
  alarm: Alarm
  unit: UnitOfWork
  agent: () => Agent
  settings: () => Settings
  turns: () => Turns
  configuration: () => Configuration
  accept: (events: readonly Event[]) => Accepted
  trim: (unit: Unit) => void
  say: (content: string, event_id: string) => void
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
  fetch: typeof fetch
  now: () => number
}

/** System 1 of a scope. The sandbox is only made once a reflex runs. */
export function composeSystem1(parts: Parts) {
  const { scope, env, database, records, log, memory, budget, alarm, unit, agent, settings, turns, now } = parts
  const sandbox = isolateSandbox
  const programs = new Programs(database, scope, settings)
  const upkeep = new Upkeep({ scope, env, database, programs, records, settings, unit, alarm, now })
  const outside = new DeclaredTools({ scope, env, settings, fetch: parts.fetch, now })
  const toolbox: Toolbox = new Toolbox({ scope, agent, settings, own: () => own, outside })
  const proving = new Proving({
    ...parts,
    programs,
    toolbox,
    moved: (unit, version, state, reason) => upkeep.moved(unit, version, state, reason),
  })
  const recordings = new Recordings({ scope, database, agent, toolbox })
  const owned = new OwnedReflexes(database, unit)
  const own = reflexTools({
    ...parts,
    owned,
    programs,
    proving,
    recordings,
    upkeep,
    sandbox,
    configure: (patch, by) => parts.configuration().change(patch, by),
    turn_id: () => turns().current?.turn_id ?? null,
  })
  const held = new HeldEvents()
  const turn = {
    cancel: (reason: string, by: string) => void turns().cancel(reason, by),
    preempt: (reason: string) => turns().preempt(reason),
    consider: () => turns().consider(),
    escalate: () => turns().escalate(),
  }
  const actions = new Actions({ ...parts, keys: parts.action_keys, held, proving, toolbox, turn })
  const thinking = () => turns().current
  const windows = new Windows(database)
  const situation = new Situation({ memory, windows, budget, agent, owned: () => owned.ids, thinking })
  const carriedOut = (version: { id: string }, key: string) => parts.action_keys.has(version.id, key)
  const chain = new Chain({
    scope,
    agents: parts.agents,
    programs,
    situation,
    records,
    proving,
    toolbox,
    agent,
    sandbox,
    carriedOut,
    log,
    now,
  })
  const reflexes = new ReflexOutcome({ scope, actions, proving, held, settlement: parts.settlement, toolbox })
  return { programs, upkeep, windows, toolbox, proving, recordings, actions, chain, reflexes }
}
