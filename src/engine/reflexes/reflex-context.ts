import type { Agent } from '../../agent/define-agent.ts'
import type { Event } from '../../core/event.ts'
import { ContextJson } from '../../reflexes/context/context-json.ts'
import { fitted, recentOf } from '../../reflexes/context/fitted.ts'
import { MOST_COUNTED, WindowCounter, type Counted } from '../../reflexes/context/windows.ts'
import { type ReflexContext, type RecentAction, WINDOW_MS } from '../../reflexes/reflex-context.ts'
import type { Budget } from '../turns/budget.ts'
import type { Stored } from '../inbox/inbox.ts'
import type { DecisionContext } from '../../core/decision-context.ts'
import type { ShownContext } from '../../reflexes/context/context-json.ts'
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
