import { createHash } from 'node:crypto'
import type { Agent } from '../../agent/define-agent.ts'
import type { Event } from '../../core/event.ts'
import { ContextJson } from '../../reflexes/context-json.ts'
import { RECENT_EVENTS, type ReflexContext, type RecentAction } from '../../reflexes/reflex-context.ts'
import { sandboxLimits } from '../../reflexes/sandbox.ts'
import type { Budget } from '../turns/budget.ts'
import type { Stored } from '../inbox/event-row.ts'
import type { DecisionContext } from '../../core/decision-context.ts'
import type { Shown } from '../../reflexes/decide.ts'
import type { Windows } from './event-counts.ts'
import type { OwnedReflexes } from './versions.ts'

type Parts = {
  windows: Windows
  budget: Budget
  agent: () => Agent
  owned: Pick<OwnedReflexes, 'ids'>
  turns: { readonly current: { since: number } | null }
}
/** Builds the context of reflexes: a copy of the scope's state, small enough for the sandbox. */
export class ReflexContexts {
  readonly #parts: Parts
  /** JSON of the latest events. */
  #recent: ReadonlyMap<Event, string> = new Map()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Builds an event's context after it joined the working memory, then each reflex's own variant.
   */
  of(stored: Stored, context: DecisionContext, now: number): (recent_actions: RecentAction[]) => Shown {
    const { windows, budget, agent, owned, turns } = this.#parts
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
    const recent_events = this.#texts(base.recent_events, stored)
    const json = ContextJson.of(base, { event: stored.text, recent_events: arrayOf(recent_events) })
    const seen = (recent_actions: RecentAction[]): Shown =>
      fitted({ ...base, recent_actions }, json.with('recent_actions', JSON.stringify(recent_actions)), recent_events)
    // Share one context among reflexes without recent actions.
    let plain: Shown | undefined
    return (recent_actions) => (recent_actions.length === 0 ? (plain ??= seen([])) : seen(recent_actions))
  }

  /** Serializes each event once. */
  #texts(events: readonly Event[], { event: own, text }: Stored): string[] {
    const texts = new Map(events.map((event) => [event, event === own ? text : (this.#recent.get(event) ?? JSON.stringify(event))]))
    this.#recent = texts
    return Array.from(texts.values())
  }
}

function recentOf(events: readonly Event[], event: Event): ReflexContext['recent_events'] {
  const last = events.slice(-RECENT_EVENTS)
  // A retried event is not the newest in the context, so move it to the end.
  return last.at(-1) === event ? last : [...last.filter((one) => one !== event).slice(1 - RECENT_EVENTS), event]
}

const arrayOf = (texts: readonly string[]): string => `[${texts.join()}]`

/** Fits a context to the sandbox's limit, which still rejects a single oversized event. */
export const shownOf = (context: ReflexContext): ReflexContext =>
  fitted(
    context,
    ContextJson.of(context),
    context.recent_events.map((event) => JSON.stringify(event)),
  ).context

/** Drops the oldest of `recent_events` until the rest fits. */
function fitted(context: ReflexContext, whole: ContextJson, recent_events: readonly string[]): Shown {
  for (let from = 0; ; from += 1) {
    const json = from === 0 ? whole : whole.with('recent_events', arrayOf(recent_events.slice(from)))
    const fits = json.fits(sandboxLimits.context_bytes)
    if (!fits && from < recent_events.length) continue
    const shown = from === 0 ? context : { ...context, recent_events: context.recent_events.slice(from) }
    return { context: shown, json, hash: createHash('sha256').update(json.text).digest('hex'), fits }
  }
}
