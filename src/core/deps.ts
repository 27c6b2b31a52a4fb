import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { DecisionContext } from './decision-context.ts'
import type { EventStore } from './event-store.ts'
import type { Event } from './event.ts'

/** The values that a trigger and its tools receive. `signal` aborts when the turn must stop. */
export type ReflexDeps<E extends Event = Event, Database = unknown> = {
  context: DecisionContext<E>
  store: EventStore<E>
  fetch: typeof fetch
  db: Database
  scope: string
  model: LanguageModelV4
  signal: AbortSignal
}

export type Filter<E extends Event = Event> = (event: E, context: DecisionContext<E>) => boolean
/** Considers the context. Returns a result if it acted, or null if there was nothing to do. */
export type Trigger<E extends Event = Event, D = ReflexDeps<E>, R = unknown> = (context: DecisionContext<E>, deps: D) => Promise<R | null>
