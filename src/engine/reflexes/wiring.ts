import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import type { ReflexSituation } from '../../reflexes/decide.ts'
import type { Ground } from '../storage/wiring.ts'
import type { Budget } from '../turns/budget.ts'
import { DeclaredTools } from '../effects/declared-tools.ts'
import { Toolbox } from '../../agent/toolbox.ts'
import { ActionKeys } from './action-keys.ts'
import { MayAct } from './may-act.ts'
import { Windows, ReflexContexts } from './reflex-context.ts'
import { permit } from '../../agent/permit.ts'
import { Recordings } from './recordings.ts'
import { ReflexSync } from './sync.ts'
import { OwnedReflexes, ReflexVersions } from './versions.ts'

export type Reflexes = Ground & ReturnType<typeof composeReflexes>

/** Wires the chain of reflexes, its trials and the tools that its actions may call. */
export function composeReflexes(parts: Ground) {
  const { scope, database, settings, unit } = parts
  const programs = new ReflexVersions(database, scope, settings)
  const reflex_sync = new ReflexSync({ ...parts, versions: programs })
  const toolbox = new Toolbox({ ...parts, outside: new DeclaredTools(parts) })
  const owned = new OwnedReflexes(database, unit)
  const may_act = new MayAct({ ...parts, programs, toolbox })
  return {
    programs,
    reflex_sync,
    toolbox,
    may_act,
    windows: new Windows(database),
    recordings: new Recordings({ ...parts, toolbox, owned }),
    owned,
    action_keys: new ActionKeys({ database, toolbox }),
  }
}

type SituationLayer = Reflexes & { budget: Budget; turns: { readonly current: { since: number } | null } }

/** The inputs of decisions. The sandbox is created when the first reflex runs. */
export function composeSituation(parts: SituationLayer): (now: number, fuel: number) => ReflexSituation {
  const { agent, settings, memory, programs, records, toolbox, action_keys, may_act } = parts
  const contexts = new ReflexContexts(parts)
  return (now, fuel) => ({
    now,
    fuel,
    perceives: settings().consumer !== 'pull',
    agent: agent().name,
    filters: agent().filters,
    reaches: (event) => parts.features.some((feature) => feature.reaches?.(event)),
    context: () => memory.copy(),
    chain: programs.links,
    sandbox: isolateSandbox,
    show: (one, context) => contexts.of(one, context, now),
    history: (who) => records.history(who),
    trial: (version) => records.trial(version),
    mayAct: (version, event_type, action) => may_act.mayAct(version, { event_type, action }, now),
    permit: (action, asked) =>
      permit(action, { ...asked, scope: parts.scope, agents: parts.agents, toolbox, has_trigger: agent().trigger !== null }),
    carriedOut: (reflex_id, key) => action_keys.has(reflex_id, key),
  })
}
