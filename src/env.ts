import type { Event } from './core/event.ts'
import type { ScopeApi } from './contract/scope-api.ts'

/** A queue message: events of one scope. `batch` is the id of D1's row for what was sent together. */
export type QueueMessage = { scope: string; events: Event[]; batch?: string }

export interface SweeperApi {
  /** Sees to it that a sweep comes within the next half minute, even if the process dies now. */
  arm(): Promise<void>
}

/** A Durable Object namespace as it is used here. The runtime's own type maps every method's types, and gives up on those that hold JSON. */
type Namespace<Api> = { getByName: (name: string) => Api & Pick<Fetcher, 'fetch'> }

export interface Env {
  SCOPE: Namespace<ScopeApi>
  SWEEPER: Namespace<SweeperApi>
  DB: D1Database
  EVENTS: Queue<QueueMessage>
  RATE_LIMIT?: RateLimit
  AI?: Ai
  REFLEX_ADMIN_KEY?: string
  /**
   * Signs the tickets for sockets and streams; without it a key is derived from REFLEX_ADMIN_KEY.
   */
  REFLEX_TICKET_SECRET?: string
  REFLEX_MODEL?: string
  /** Of the local server: it answers a stack with the same by the source files' lines. */
  REFLEX_STACK_MAPPER?: string
  /** How many days D1 keeps events that have ended, and the like; `events/retention.ts` parses it. */
  REFLEX_RETENTION_DAYS?: string
  OPENAI_COMPATIBLE_BASE_URL?: string
  OPENAI_COMPATIBLE_API_KEY?: string
  /** Secrets for the tools that settings declare are beside these, each by a name that begins with REFLEX_TOOL_, and its hosts by that name and _HOSTS. */
  [tool_secret: `REFLEX_TOOL_${string}`]: string | undefined
}
