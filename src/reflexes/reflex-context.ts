import type { Action } from '../contract/action.ts'
import type { PendingContract, PendingPurchase } from '../contract/licence.ts'
import type { Event } from '../core/event.ts'

/** The events that the scope perceived within a time window, including the current one. */
export type WindowCounts = { total: number; by_type: Record<string, number>; by_source: Record<string, number> }

/** An earlier action of the reflex itself, newest last. */
export type RecentAction = { at: string; seconds_ago: number; event_id: string; action: Action }

/** A copy of all that a reflex sees, as plain JSON. */
export type ReflexContext = {
  agent_id: string
  /** The position of the current event among those that the scope accepted. */
  tick: number
  /** The balance of the scope's account, in scrip. */
  balance: number
  /** Tokens that the scope's budget still allows its model; null where there is no budget. */
  llm_tokens_remaining: number | null
  /** The last 10 of the context, oldest first; the last one is `event`. */
  recent_events: (Event & Record<string, unknown>)[]
  /** Deals that wait for this agent's answer as their seller, oldest first. */
  pending_purchases: readonly PendingPurchase[]
  /** Proposals of contracts that wait for this agent's answer, oldest first. */
  pending_contracts: readonly PendingContract[]
  /** Ids of the reflexes and skills that the agent owns. */
  owned_artifacts: readonly string[]
  /** The current event, with the fields of its type. */
  event: Event & Record<string, unknown>
  window: { '10s': WindowCounts; '1m': WindowCounts; '10m': WindowCounts }
  /** The reflex's own last 10, for cooldowns. */
  recent_actions: RecentAction[]
  /** The context's notes; the action `set_scratch` writes them. */
  scratch: Record<string, unknown>
  /** The turn in flight, or null. */
  thinking: { since: string } | null
}

/** Number of events in the context. */
export const RECENT_EVENTS = 10
export const WINDOW_MS = { '10s': 10_000, '1m': 60_000, '10m': 600_000 } as const
const event = {
  id: '01993f2e-7c00-7000-8000-000000000001',
  type: 'ws.message',
  scope: 'default',
  source: 'ws:alice',
  timestamp: '2026-11-21T05:00:00.000Z',
  meta: { trace_id: '0123456789abcdef0123456789abcdef', correlation_id: null, causation_id: null },
  connection_id: 'alice',
  content: 'hello',
}
const counts: WindowCounts = { total: 1, by_type: { 'ws.message': 1 }, by_source: { 'ws:alice': 1 } }

/** For dry runs and documentation. Has every field. */
export const sampleContext: ReflexContext = {
  agent_id: 'prompted',
  tick: 1,
  balance: 0,
  llm_tokens_remaining: null,
  recent_events: [event],
  pending_purchases: [],
  pending_contracts: [],
  owned_artifacts: [],
  event,
  window: { '10s': counts, '1m': counts, '10m': counts },
  recent_actions: [],
  scratch: {},
  thinking: null,
}

/** The sample context with these fields in its event. */
export function sampleWith(fields: Record<string, unknown>): ReflexContext {
  const event = { ...sampleContext.event, ...fields }
  const counts = { total: 1, by_type: { [event.type]: 1 }, by_source: { [event.source]: 1 } }
  return { ...sampleContext, event, recent_events: [event], window: { '10s': counts, '1m': counts, '10m': counts } }
}
