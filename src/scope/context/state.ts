import type { ContextView, ScopeState } from '../../contract/scope.ts'
import type { Event } from '../../core/event.ts'
import type { Collaborators } from '../wiring.ts'

export { contextAt } from './past-context.ts'

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

export function metricsOf({ scope, counters, records, certificates }: Collaborators) {
  const reflexes = records.all().map((entry) => ({ ...entry, certificate: certificates.of({ ...entry, id: entry.reflex_id }) }))
  return { scope, counters: counters.counts, reflexes }
}
