import { createHash } from 'node:crypto'
import type { Agent } from '../../agents/define-agent.ts'
import type { Event } from '../../core/event.ts'
import { RECENT_EVENTS, type ReflexContext, type RecentAction } from '../../reflexes/reflex-context.ts'
import { sandboxLimits } from '../../reflexes/sandbox.ts'
import type { Budget } from '../budget.ts'
import type { Stored } from '../inbox.ts'
import type { WorkingMemory } from '../working-memory.ts'
import type { Windows } from './windows.ts'

const encoder = new TextEncoder()

type Parts = {
  memory: WorkingMemory
  windows: Windows
  budget: Budget
  agent: () => Agent
  owned: () => string[]
  thinking: () => { since: number } | null
}
/** `fits`: the sandbox takes it. */
export type Seen = { context: ReflexContext; hash: string; fits: boolean }

/** What reflexes see of the scope when an event is at hand: a copy, small enough for the sandbox. */
export class Situation {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** For one event, once it has joined the context; then for each reflex, by what it has done itself. */
  of(stored: Stored, now: number): (recent_actions: RecentAction[]) => Seen {
    const { memory, windows, budget, agent, owned, thinking } = this.#parts
    const event = stored.event as Event & Record<string, unknown>
    const turn = thinking()
    windows.add(event, now, stored.seq)
    const base: ReflexContext = {
      agent_id: agent().name,
      tick: stored.seq,
      balance: 0,
      llm_tokens_remaining: budget.remaining(),
      recent_events: recentOf(memory.live.events, event),
      pending_purchases: [],
      pending_contracts: [],
      owned_artifacts: owned(),
      event,
      window: windows.counts(now, event),
      recent_actions: [],
      scratch: memory.live.scratch,
      thinking: turn && { since: new Date(turn.since).toISOString() },
    }
    // Most reflexes have done nothing lately and see the same.
    let plain: Seen | undefined
    return (recent_actions) => (recent_actions.length === 0 ? (plain ??= fitted(base)) : fitted({ ...base, recent_actions }))
  }
}

function recentOf(events: readonly Event[], event: Event): ReflexContext['recent_events'] {
  const last = events.slice(-RECENT_EVENTS)
  // One that is tried again stands further back.
  return last.at(-1) === event ? last : [...last.filter((one) => one !== event).slice(1 - RECENT_EVENTS), event]
}

/** Large events leave `recent_events` from the oldest on, until the rest fits. */
function fitted(context: ReflexContext): Seen {
  for (let from = 0; ; from += 1) {
    const shown = from === 0 ? context : { ...context, recent_events: context.recent_events.slice(from) }
    const text = JSON.stringify(shown)
    const fits = text.length * 3 <= sandboxLimits.context_bytes || encoder.encode(text).length <= sandboxLimits.context_bytes
    if (!fits && shown.recent_events.length > 0) continue
    return { context: shown, hash: createHash('sha256').update(text).digest('hex'), fits }
  }
}
