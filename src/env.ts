import type { Event } from './core/event.ts'
import type { KeyedOutput, KeyHolder, LeaseAnswer, LeaseAsked, ScopeApi, WorkState } from './contract/scope-api.ts'

/**
 * A queue message. `batch` is the id of the row in D1 for one `sendBatch`. Another producer may
 * name the `scope` of all events, and their `sender`, which counts more than `meta.sender`. A
 * message of events that were sent again has their `attempts`, which began at `first_at`, in ms.
 */
export type QueueMessage = { events: Event[]; scope?: string; sender?: string; batch?: string; attempts?: number; first_at?: number }

export interface SweeperApi {
  /** Ensures a sweep within 30 s, even if the process dies now. */
  arm(): Promise<void>
}

/** `held`: other work holds the key. `unknown`: its scope did not respond. */
export type KeyClaim = { state: 'granted' | 'held' | 'unknown' } | ({ state: 'done' } & KeyedOutput)

/** The object of one deployment-wide idempotency key, or of one shared budget. */
export interface GlobalKeyApi {
  /** Waits at most `wait_ms` for other work under the key. Idempotent. */
  claim(holder: KeyHolder, options: { wait_ms: number; keep_ms: number }): Promise<KeyClaim>
  /** Records the end of the holder's work. Ignored if `holder` does not hold the key. */
  settle(holder: KeyHolder, state: WorkState): Promise<void>
  /** Frees the key after an undo. `id` makes the release idempotent. */
  release(id: string): Promise<void>
  /** A part of the shared budget of this name. */
  lease(name: string, asked: LeaseAsked): Promise<LeaseAnswer>
}

/** A Durable Object namespace. The runtime's own type is too deep for methods with JSON types. */
export type Namespace<Api> = { getByName: (name: string) => Api & Pick<Fetcher, 'fetch'> }

/** Features add the bindings of their objects. */
export interface Env {
  SCOPE: Namespace<ScopeApi>
  SWEEPER: Namespace<SweeperApi>
  GLOBAL_KEYS: Namespace<GlobalKeyApi>
  DB: D1Database
  /** Databases for packed events beside `DB`, up to 16; docs/operating.md. */
  [more: `EVENTS_DB_${number}`]: D1Database | undefined
  EVENTS: Queue<QueueMessage>
  /** Gathers the outcomes of lone events, which are then packed; docs/cost.md. */
  OUTCOMES?: Queue
  RATE_LIMIT?: RateLimit
  /** `off`: requests with a key are not counted, as on a local server. */
  REFLEX_RATE_LIMIT?: string
  /** The files of the dashboard and the documentation. */
  ASSETS?: Pick<Fetcher, 'fetch'>
  /** Gets events and log entries before retention deletes them. */
  ARCHIVE?: R2Bucket
  AI?: Ai
  REFLEX_ADMIN_KEY?: string
  /** Signs tickets for sockets and streams; derived from REFLEX_ADMIN_KEY if unset. */
  REFLEX_TICKET_SECRET?: string
  /** Key of the hashes that replace redacted values, of 16 characters or more. */
  REFLEX_REDACTION_SECRET?: string
  /** Signs receipts, as `reflex receipts init` writes it; docs/receipts.md. */
  REFLEX_RECEIPTS_KEY?: string
  /** The deployed version, if the binding is configured. */
  CF_VERSION_METADATA?: { id: string }
  REFLEX_MODEL?: string
  /** `observe`, `ask` or `refuse`: the setting `origins` of scopes that set none. */
  REFLEX_ORIGINS?: string
  /** The decision model, whose forms `models/decisions/resolve.ts` has. */
  REFLEX_DECISION_MODEL?: string
  /** Own prices as JSON: USD per million tokens, by model. */
  REFLEX_MODEL_PRICES?: string
  /** Budgets in money that scopes share, as JSON; docs/cost.md. */
  REFLEX_BUDGETS?: string
  SYSTEM_ONE_URL?: string
  SYSTEM_ONE_API_KEY?: string
  /** Local server only: maps a stack trace to source files. */
  REFLEX_STACK_MAPPER?: string
  /** Days that D1 keeps ended events and the like, parsed by `events/retention.ts`. */
  REFLEX_RETENTION_DAYS?: string
  /** Bytes of packed events that D1 keeps: 6 GB if unset. Parsed by `events/retention.ts`. */
  REFLEX_EVENTS_BYTES?: string
  /** `off`: no notes in D1 of what was sent to the queue, which a deployed queue keeps itself. */
  REFLEX_QUEUE_NOTES?: string
  /** Days that the Ledger keeps transfers, which D1 has as well; 400 if unset. */
  REFLEX_LEDGER_RETENTION_DAYS?: string
  /** Megabytes that one key adds to the Ledger and D1 within a day; 10 if unset. */
  REFLEX_LEDGER_MB_PER_DAY?: string
  /** Megabytes of the Ledger from which on an alert is raised; 5,000 if unset. */
  REFLEX_ALERT_LEDGER_MB?: string
  /** Reflexes that do not act in any scope: ids separated by commas, or `*`. */
  REFLEX_REFLEXES_OFF?: string
  /** Hours between scheduled runs of learning in a scope; 24 by default. */
  REFLEX_LEARN_EVERY_HOURS?: string
  /** The scope that gets the deployment's alerts, and their limits; docs/webhooks.md. */
  REFLEX_ALERT_SCOPE?: string
  REFLEX_ALERT_DEAD_LETTERS?: string
  REFLEX_ALERT_APPROVAL_MINUTES?: string
  REFLEX_ALERT_FAILED_SHARE?: string
  REFLEX_ALERT_TURN_SECONDS?: string
  REFLEX_ALERT_COST_USD?: string
  REFLEX_ALERT_COST_TIMES?: string
  /** Another deployment whose skills and policy this one follows; docs/control-plane.md. */
  REFLEX_CONTROL_PLANE_URL?: string
  REFLEX_CONTROL_PLANE_KEY?: string
  REFLEX_CONTROL_PLANE_PROJECT?: string
  /** Scopes and tools that its skills may use, as patterns separated by commas: all if unset. */
  REFLEX_CONTROL_PLANE_SCOPES?: string
  REFLEX_CONTROL_PLANE_TOOLS?: string
  /** `effects`, `always` or `never`: when a person approves a run of its skills. */
  REFLEX_CONTROL_PLANE_APPROVAL?: string
  /** The environments that take an active skill without a promotion, separated by commas. */
  REFLEX_OPEN_ENVIRONMENTS?: string
  /** The collector of spans; docs/observability.md has the variables. */
  OTEL_EXPORTER_OTLP_ENDPOINT?: string
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT?: string
  OTEL_EXPORTER_OTLP_HEADERS?: string
  OTEL_EXPORTER_OTLP_TRACES_HEADERS?: string
  OTEL_EXPORTER_OTLP_TIMEOUT?: string
  OTEL_TRACES_SAMPLER_ARG?: string
  OTEL_SERVICE_NAME?: string
  OTEL_RESOURCE_ATTRIBUTES?: string
  OPENAI_COMPATIBLE_BASE_URL?: string
  OPENAI_COMPATIBLE_API_KEY?: string
  /** Secrets of tools, and with the suffix _HOSTS the hosts that each may be sent to. */
  [tool_secret: `REFLEX_TOOL_${string}`]: string | undefined
  /** Secrets that sign outgoing webhooks, with `_HOSTS` likewise; docs/webhooks.md. */
  [webhook_secret: `REFLEX_WEBHOOK_${string}`]: string | undefined
  /** Secrets that verify incoming webhooks. */
  [hook_secret: `REFLEX_HOOK_${string}`]: string | undefined
}
