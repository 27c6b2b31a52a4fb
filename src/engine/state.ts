import type { ContextView, ScopeChain, ScopeState } from '../contract/scope.ts'
import type { ScopeMetrics } from '../contract/scope-api.ts'
import type { Event } from '../core/event.ts'
import { namedTypes } from '../core/decision-context.ts'
import { modelName } from '../models/resolve-model.ts'
import type { Collaborators } from './wiring.ts'

export { contextAt } from './context/past-context.ts'

export async function stateOf(parts: Collaborators): Promise<ScopeState> {
  const { scope, view, counters, turns, store, log, sockets, outbox, guard, memory, budget, outage, secret_settings, features, now } = parts
  const turn = turns.current
  const state: ScopeState = {
    scope,
    agent: store.agent().name,
    settings: await secret_settings.settled(store.settings()),
    inbox: view.depth(now()),
    context: { events: memory.count },
    counters: counters.counts,
    fired: NONE_FIRED,
    turn: turn?.held ? { turn_id: turn.turn_id, since: new Date(turn.since).toISOString(), events: turn.claimed.length } : null,
    llm_tokens_remaining: budget.remaining(),
    waiting_for_model: outage.state,
    sockets: sockets.count,
    outbox: { waiting: outbox.waiting, last_error: outbox.lastError },
    spans: null,
    archive: null,
    parked: guard.list(),
    last_seq: log.last,
  }
  return Object.assign(state, ...features.map((feature) => feature.state?.())) as ScopeState
}

const NONE_FIRED: ScopeState['fired'] = { share: null, decided: 0, model_calls: 0 }

/** Without redacted values. */
export function contextOf({ scope, memory, log, hider }: Collaborators, limit: number, before?: number): ContextView {
  const { created_at, last_action_at, scratch } = memory.live
  const { events, first, more } = memory.page(limit, before)
  const quotes = log.masks.ofAll(memory.live.events)
  const shown = (value: unknown) => hider.value(quotes.value(log.clean(value)))
  return {
    scope,
    created_at: new Date(created_at).toISOString(),
    last_action_at: last_action_at === null ? null : new Date(last_action_at).toISOString(),
    events: shown(events) as Event[],
    count: memory.count,
    scratch: shown(scratch) as typeof scratch,
    next_cursor: more ? String(first) : null,
  }
}

export function metricsOf({ scope, counters, records, features }: Collaborators): ScopeMetrics {
  const reflexes = records.all().map((entry) => {
    const of = { id: entry.reflex_id, version: entry.version }
    return Object.assign({ ...entry, certificate: null }, ...features.map((feature) => feature.metrics?.(of))) as Reported
  })
  return { scope, counters: counters.counts, reflexes }
}

type Reported = ScopeMetrics['reflexes'][number]

export function chainOf({ scope, store, programs, toolbox, features, env, may_act, now }: Collaborators): ScopeChain {
  const [agent, settings] = [store.agent(), store.settings()]
  const { consumer } = settings
  const chain: ScopeChain = {
    scope,
    agent: { name: agent.name, version: agent.version ?? null },
    consumer,
    filters: { count: agent.filters.length, types: [...new Set(agent.filters.flatMap(namedTypes))] },
    reflexes: programs.links.map(({ reference, acting, earlier, watching, absent }) => {
      const idle = acting && may_act.idle(acting, now())
      const acts = idle === null ? acting : earlier
      return {
        id: reference.id,
        version: acts?.version ?? null,
        watching: (idle === null ? watching[0] : acting)?.version ?? null,
        by_proof: acts?.by_proof ?? false,
        absent: absent?.detail ?? (idle === null ? null : `version ${acting?.version} does not act: ${idle}`),
        cooldown_s: reference.cooldown_s ?? null,
        rate: reference.rate ?? null,
      }
    }),
    decision_model: null,
    turn: agent.trigger && { model: modelName(env, settings), tools: Array.from(toolbox.allowed) },
  }
  return Object.assign(chain, ...features.map((feature) => feature.chain?.())) as ScopeChain
}
