import type { CallKeys, ToolCall } from './reflex.ts'
import type { TraceContext } from './traceparent.ts'
import type { Event } from '../core/event.ts'
import type { Delivery } from '../core/event-store.ts'
import type { Decider } from './approval.ts'
import type { EventRecord } from './event-record.ts'
import type { Via } from './log-entry.ts'
import type { ParkedWork } from './parked-work.ts'
import type { ReflexMetrics } from './reflex-metrics.ts'
import type { Schedule } from './schedule.ts'
import type { Settings, SettingsPatch } from './settings.ts'

/** Answers of the Durable Object: expected outcomes are data with a `reason`; what throws is a bug or broken infrastructure. */
export type EventReceipt = { id: string; scope: string; trace_id: string; status: 'accepted' | 'duplicate' | 'queued' }
export type Accepted = { ok: true; receipts: EventReceipt[] } | { ok: false; reason: 'inbox_full'; depth: number; limit: number }
/** How an event ended, without the event: who waits for it has it. */
export type EventOutcome = Pick<EventRecord, 'status' | 'attempts' | 'error' | 'outcome' | 'waiting'> & {
  id: string
  trace_id: string
  shortened?: true
}
export type Waited = { settled: boolean; records: EventOutcome[] }
/** `claim_id` names the claim: made again under it, it gets what it had before. */
export type ClaimRequest = { claim_id?: string | undefined; limit: number; lease_s: number; types?: string[] | undefined }
export type Counters = Record<
  | 'accepted'
  | 'duplicates'
  | 'completed'
  | 'ignored'
  | 'dead_lettered'
  | 'cancelled'
  | 'retried'
  | 'turns'
  | 'turns_failed'
  | 'reflex_actions'
  | 'effects'
  | 'effects_failed'
  | 'model_calls'
  | 'input_tokens'
  | 'output_tokens'
  | 'cost_usd',
  number
>
/** The scope waits for its model's provider since then, and asks it again at `until`. */
export type ModelWait = { since: string; until: string; tries: number; detail: string }
export type Depth = { pending: number; processing: number; delayed: number }
export type ScopeState = {
  scope: string
  agent: string
  settings: Settings
  inbox: Depth
  context: { events: number }
  counters: Counters
  turn: null | { turn_id: string; since: string; events: number }
  llm_tokens_remaining: number | null
  /** Null while the model's provider can be reached, as far as the scope knows. */
  waiting_for_model: ModelWait | null
  sockets: number
  outbox: { waiting: number; last_error: string | null }
  parked: ParkedWork[]
  last_seq: number
}
export type ContextView = {
  scope: string
  created_at: string
  last_action_at: string | null
  events: Event[]
  count: number
  scratch: Record<string, unknown>
  next_cursor: string | null
}
/** What each version of a reflex has done in this scope. */
export type ScopeMetrics = { scope: string; counters: Counters; reflexes: { reflex_id: string; version: number; metrics: ReflexMetrics }[] }
export type Timer = { name: string; schedule: Schedule; next_at: string; fired: number }
export type Page<Item> = { items: Item[]; next_cursor: string | null }
export type Refused<Reason extends string> = { ok: false; reason: Reason; detail: string }
/**
 * Who connects to a scope's socket or stream, as the Worker has checked it; it travels in the header `x-reflex-connect`. `decides_as` is null where the key may
 * not decide on approvals.
 */
export type Connect = {
  connection_id: string
  key_id: string
  source: string
  may_send: boolean
  decides_as: Decider | null
  after: number | null
}

/** `key` names the effect: under the same one it happens once. */
export type OperatorCall = { tool: string; input: unknown; key: string; trace?: TraceContext | undefined }

/** Who proposes. `trace` is that of the request. */
export type ProposalCaller = {
  name: string
  key_id: string
  from: 'caller' | 'model'
  roles: string[]
  dry_run: boolean
  trace?: TraceContext | undefined
}

/** What a Scope offers over RPC. Log entries travel as JSON text: the object has them so, and the route passes them on unparsed. */
export interface ScopeApi {
  accept(events: Event[], via: Via): Promise<Accepted>
  /** Waits until each of the events has its outcome, `timeout_ms` at most. */
  outcomes(ids: string[], timeout_ms: number): Promise<Waited>
  state(): Promise<ScopeState>
  /** The newest events first fill the answer; `before` is the `next_cursor` of the answer before. */
  context(limit: number, before?: number): Promise<ContextView>
  readLog(after: number, limit: number, before?: number): Promise<{ entries: string[]; last_seq: number }>
  event(id: string): Promise<EventRecord | null>
  /** `by` is a name, for the log; `key_id` is who sets it. */
  configure(patch: SettingsPatch, by: string, key_id?: string): Promise<{ ok: true; settings: Settings } | Refused<'invalid'>>
  claim(request: ClaimRequest, by: string): Promise<{ ok: true; deliveries: Delivery[] } | Refused<'not_pull'>>
  /** Takes back a claim whose answer could not be sent, as if it had not been made; says how many events. */
  giveBack(claim_id: string, why: string): Promise<number>
  ack(tokens: string[]): Promise<{ acked: string[]; stale: string[] }>
  nack(token: string, error: string): Promise<{ ok: true; status: string; due_at: string | null } | Refused<'stale'>>
  cancel(reason: string, by: string): Promise<{ cancelled: boolean; turn_id: string | null; events: number }>
  setTimer(
    name: string,
    schedule: Schedule,
    by: string,
  ): Promise<{ ok: true; created: boolean; timer: Timer } | Refused<'never_due' | 'too_many'>>
  timers(): Promise<Timer[]>
  timer(name: string): Promise<Timer | null>
  removeTimer(name: string, by: string): Promise<boolean>
  /** Dead letters go back to pending with their attempts at zero. */
  reopen(ids: string[], by: string): Promise<string[]>
  /** The outcome stays `dead_lettered`; it is only no longer listed. */
  discard(ids: string[], by: string): Promise<string[]>
  /** These reflexes have a new version or state. */
  reflexesChanged(ids: string[]): Promise<void>
  /** Events as reflexes saw or would have seen them, oldest first, each as the JSON of a Recording; `next` is the `after` of the next page. */
  recordings(request: { since: number; after: number; limit: number }): Promise<{ recordings: string[]; next: number | null }>
  /** Names tool calls as the scope's effects do, in their order. */
  identify(calls: ToolCall[]): Promise<(CallKeys | null)[]>
  metrics(): Promise<ScopeMetrics>
  /** Decides on a proposal, and runs it where it may: the JSON of a ProposalResult. What a model sends may hold no secret, and is told none. */
  propose(proposal: { skill_id: string; inputs: Record<string, unknown>; why: string }, by: ProposalCaller): Promise<string>
  /** What a model would be told of skills about this text: the JSON of a Bulletin. */
  bulletin(text: string): Promise<string>
  /** A page of the skills that fit here, by id, those behind `after`: JSON of `{goal_labels, skills: [{manifest, needed}], more}`. */
  skills(page: { after: string; limit: number }): Promise<string>
  /** The ids of all of them. */
  skillIds(): Promise<string[]>
  /** A person decided on an approval that this scope asked for: it reads the decision in D1. */
  approvalDecided(id: string): Promise<void>
  /** Has the scope's agent use one of its tools. `failed` where the tool says that it did not do it, or it may have. */
  callTool(call: OperatorCall, by: string): Promise<{ ok: true } | Refused<'no_tool' | 'failed'>>
  /** Uses up a ticket that the Worker has verified. */
  useTicket(nonce: string, expires_at: number): Promise<{ ok: true } | Refused<'used' | 'too_many'>>
  /** Sets right what a lost alarm left lying; says when it wants to wake next, in ms. */
  poke(): Promise<{ wake_at: number | null }>
}
