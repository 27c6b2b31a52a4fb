import type { AgentRegistry } from '../../agent/registry.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { Env } from '../../env.ts'
import type { Event } from '../../core/event.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import type { SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { Alarm } from '../upkeep/alarm.ts'
import type { Budget } from '../turns/budget.ts'
import type { Counters } from '../storage/counters.ts'
import type { Database } from '../storage/database.ts'
import type { EffectLane } from '../effects/effect-lane.ts'
import type { Guard } from '../upkeep/guard.ts'
import type { Log } from '../log/log.ts'
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
import type { Situation } from '../../reflexes/decide.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { ReflexVersions, OwnedReflexes } from './versions.ts'
import { Proving } from './shadow.ts'
import { Recordings } from './recordings.ts'
import type { Records } from './stats.ts'
import { permit } from './permit.ts'
import { ReflexContexts } from './reflex-context.ts'
import { reflexTools } from './tools.ts'
import { ReflexSync } from './sync.ts'
import { Windows } from './event-counts.ts'
import type { UnitOfWork } from '../storage/unit.ts'

type Parts = {
  scope: string
  env: Env
  agents: AgentRegistry
  guard: Guard
  database: Database
  records: Records
  log: Log
  inbox: Inbox
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
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
  fetch: typeof fetch
  now: () => number
}

/** Wires System 1 of a scope. The sandbox is created when the first reflex runs. */
export function composeSystem1(parts: Parts) {
  const { scope, env, database, records, memory, budget, alarm, unit, agent, settings, turns, now } = parts
  const sandbox = isolateSandbox
  const programs = new ReflexVersions(database, scope, settings)
  const upkeep = new ReflexSync({ scope, env, database, versions: programs, records, settings, unit, alarm, now })
  const outside = new DeclaredTools({ scope, env, settings, fetch: parts.fetch, now })
  const toolbox: Toolbox = new Toolbox({ scope, agent, settings, own: () => own, outside })
  const proving = new Proving({
    ...parts,
    programs,
    toolbox,
    moved: (unit, version, state, reason) => upkeep.moved(unit, version, state, reason),
  })
  const recordings = new Recordings({ database, log: parts.log, agent, toolbox })
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
  const actions = new Actions({ ...parts, keys: parts.action_keys, proving, toolbox, consider: () => turns().consider() })
  const thinking = () => turns().current
  const windows = new Windows(database)
  const contexts = new ReflexContexts({ windows, budget, agent, owned: () => owned.ids, thinking })
  const { agents } = parts
  const situation = (now: number, fuel: number): Situation => ({
    now,
    fuel,
    perceives: settings().consumer !== 'pull',
    agent: agent().name,
    filters: agent().filters,
    context: () => memory.copy(),
    chain: programs.links,
    sandbox,
    show: (one, context) => contexts.of(one, context, now),
    history: (who) => records.history(who),
    trial: (version) => records.trial(version),
    permit: (action, asked) => permit(action, { ...asked, scope, agents, toolbox, has_trigger: agent().trigger !== null }),
    carriedOut: (reflex_id, key) => parts.action_keys.has(reflex_id, key),
  })
  return { programs, upkeep, windows, toolbox, proving, recordings, actions, situation }
}
