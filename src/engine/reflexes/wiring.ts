import { isolateSandbox } from '../../reflexes/isolate-sandbox.ts'
import type { ReflexSituation } from '../../reflexes/decide.ts'
import type { Ground } from '../storage/wiring.ts'
import type { Budget } from '../turns/model-access.ts'
import { DeclaredTools } from '../effects/declared-tools.ts'
import { Toolbox } from '../../agent/toolbox.ts'
import { CallerTools } from '../../tools/caller-tools.ts'
import { ActionKeys } from './action-keys.ts'
import { MayAct } from './may-act.ts'
import { permit } from '../../agent/permit.ts'
import { Recordings } from './recordings.ts'
import { ReflexSync } from './sync.ts'
import { OwnedReflexes, ReflexVersions } from './versions.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { Event } from '../../core/event.ts'
import {
  ContextJson,
  fitted,
  recentOf,
  MOST_COUNTED,
  WindowCounter,
  type Counted,
  type ShownContext,
} from '../../reflexes/context/context-json.ts'
import { type ReflexContext, type RecentAction, WINDOW_MS } from '../../reflexes/reflex-context.ts'
import type { Stored } from '../inbox/inbox.ts'
import type { DecisionContext } from '../../core/decision-context.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Database } from '../../kernel/unit.ts'

type ReflexContextParts = {
  windows: Windows
  budget: Budget
  agent: () => Agent
  features: readonly Pick<ScopeFeature, 'context'>[]
  turns: { readonly current: { since: number } | null }
  owned: { readonly ids: readonly string[] }
}
/** Builds the context of reflexes: a copy of the scope's state, small enough for the sandbox. */
export class ReflexContexts {
  readonly #parts: ReflexContextParts
  /** JSON of the latest events. */
  #recent: ReadonlyMap<Event, string> = new Map()

  constructor(parts: ReflexContextParts) {
    this.#parts = parts
  }

  /** Builds an event's context, then each reflex's own variant. */
  of(stored: Stored, context: DecisionContext, now: number): (recent_actions: RecentAction[]) => ShownContext {
    const { windows, budget, agent, features, turns, owned } = this.#parts
    const event = stored.event as Event & Record<string, unknown>
    const turn = turns.current
    windows.add(event, now, stored.seq)
    const base: ReflexContext = {
      agent_id: agent().name,
      tick: stored.seq,
      balance: 0,
      llm_tokens_remaining: budget.remaining(),
      recent_events: recentOf(context.events, event),
      pending_purchases: [],
      pending_contracts: [],
      owned_artifacts: owned.ids,
      event,
      window: windows.counts(now, event),
      recent_actions: [],
      scratch: context.scratch,
      thinking: turn && { since: new Date(turn.since).toISOString() },
    }
    for (const feature of features) Object.assign(base, feature.context?.())
    const recent_events = this.#texts(base.recent_events, stored)
    const json = ContextJson.of(base, { event: stored.text, recent_events })
    const seen = (recent_actions: RecentAction[]): ShownContext => {
      const texts = recent_actions.map((action) => JSON.stringify(action))
      return fitted({ ...base, recent_actions }, json.with('recent_actions', texts), recent_events)
    }
    // Share one context among reflexes without recent actions.
    let plain: ShownContext | undefined
    return (recent_actions) => (recent_actions.length === 0 ? (plain ??= seen([])) : seen(recent_actions))
  }

  /** Serializes each event once. */
  #texts(events: readonly Event[], { event: own, text }: Stored): string[] {
    const texts = new Map(events.map((event) => [event, event === own ? text : (this.#recent.get(event) ?? JSON.stringify(event))]))
    this.#recent = texts
    return Array.from(texts.values())
  }
}

/** Counts recent events by the scope's clock. Loads them from the inbox on first use. */
export class Windows {
  readonly #database: Database
  #counter: WindowCounter | null = null

  constructor(database: Database) {
    this.#database = database
  }

  /** Drops the counts; the next event loads them from the inbox again. */
  forget(): void {
    this.#counter = null
  }

  /** Counts an event once, even if it is retried. `seq` is its place in the inbox. */
  add({ type, source }: { type: string; source: string }, at: number, seq: number): void {
    this.#counter ??= new WindowCounter(this.#load(at, seq))
    this.#counter.add({ seq, at, type, source })
  }

  counts(now: number, own: { type: string; source: string }): ReflexContext['window'] {
    return (this.#counter ?? new WindowCounter()).counts(now, own)
  }

  #load(now: number, own: number): Counted[] {
    return this.#database.all<Counted>(
      `SELECT seq, at, type, source FROM (SELECT seq, accepted_at AS at, type, source, status FROM events WHERE seq <> ? ORDER BY seq DESC LIMIT ${MOST_COUNTED})
        WHERE at >= ? AND status <> 'ignored' ORDER BY seq`,
      own,
      now - WINDOW_MS['10m'],
    )
  }
}

export type Reflexes = Ground & ReturnType<typeof composeReflexes>

/** Wires the chain of reflexes, its trials and the tools that its actions may call. */
export function composeReflexes(parts: Ground) {
  const { scope, database, settings, unit, env } = parts
  const programs = new ReflexVersions(database, scope, settings, env.REFLEX_REFLEXES_OFF)
  const reflex_sync = new ReflexSync({ ...parts, versions: programs })
  const caller_tools = new CallerTools()
  const toolbox = new Toolbox({ ...parts, outside: new DeclaredTools({ ...parts, caller_tools }) })
  const owned = new OwnedReflexes(database, unit)
  const may_act = new MayAct({ ...parts, programs, toolbox })
  return {
    programs,
    reflex_sync,
    toolbox,
    caller_tools,
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
    mayAct: (version, event, action) => may_act.mayAct(version, { event_type: event.type, event, action }, now),
    permit: (action, asked) => permit(action, { ...asked, scope: parts.scope, agents: parts.agents, toolbox }),
    carriedOut: (reflex_id, key) => action_keys.has(reflex_id, key),
  })
}
