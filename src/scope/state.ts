import type { ContextView, ScopeState } from '../contract/scope.ts'
import type { Collaborators } from './wiring.ts'

export async function stateOf(parts: Collaborators): Promise<ScopeState> {
  const {
    archive,
    history,
    scope,
    view,
    counters,
    turns,
    store,
    log,
    sockets,
    outbox,
    spans,
    guard,
    memory,
    budget,
    outage,
    secret_settings,
    now,
  } = parts
  const turn = turns.current
  return {
    scope,
    agent: store.agent.name,
    settings: await secret_settings.settled(store.settings),
    inbox: view.depth(now()),
    context: { events: memory.count },
    counters: counters.counts,
    turn: turn?.held ? { turn_id: turn.turn_id, since: new Date(turn.since).toISOString(), events: turn.claimed.length } : null,
    llm_tokens_remaining: budget.remaining(),
    waiting_for_model: outage.state,
    sockets: sockets.count,
    outbox: { waiting: outbox.waiting, last_error: outbox.lastError },
    spans: spans?.state ?? null,
    archive: archive && { files: history.newest, last_error: archive.lastError },
    parked: guard.list(),
    last_seq: log.last,
  }
}

export function contextOf({ scope, memory }: Collaborators, limit: number, before?: number): ContextView {
  const { created_at, last_action_at, scratch } = memory.live
  const { events, first, more } = memory.page(limit, before)
  return {
    scope,
    created_at: new Date(created_at).toISOString(),
    last_action_at: last_action_at === null ? null : new Date(last_action_at).toISOString(),
    events,
    count: memory.count,
    scratch,
    next_cursor: more ? String(first) : null,
  }
}
