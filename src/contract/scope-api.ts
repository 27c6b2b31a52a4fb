import type { Refused, Result } from '../base/result.ts'
import type { Event } from '../core/event.ts'
import type { Delivery } from '../core/event-store.ts'
import type { DecidedBy } from './principal.ts'
import type { EventOutcome, EventReceipt, EventRecord, EventStatus, TraceMarks } from './event-record.ts'
import type { EntryBody, LogEntry, Via } from './log-entry.ts'
import type { ActionCall } from './action.ts'
import type { CallKeys } from './reflex.ts'
import type { Certificate } from './certificate.ts'
import type { ReflexMetrics } from './reports/reflex-report.ts'
import type { PageGaps } from './lists/packs.ts'
import type { Schedule, Timer } from './settings/schedule.ts'
import type { ArchivedFile, ContextView, Counters, ModelWait, ScopeChain, ScopeState, ScopeTool } from './scope.ts'
import type { Settings, SettingsPatch } from './settings/settings.ts'

export type { Schedule, SettingsPatch, Via }
/** A caller that packs outcomes; an earlier version writes no rows of scopes with them. */
export type Packs = true | 'rows, too'
/** `outcomes`: JSON of those that the caller packs, as it has said. */
export type Accepted = Result<{ receipts: EventReceipt[]; outcomes?: string }, { reason: 'inbox_full' } & FullInbox>
/** `rows`: the scope has written as many rows as it may within a day. `until` is in ms. */
export type FullInbox = { depth: number; limit: number; rows?: { limit: number; until: number } }
/** `unknown`: the log has not reached it. `gone`: retention has deleted what it is made from. */
export type PastContext = Result<{ context: ContextView }, Refused<'unknown' | 'gone' | 'unavailable'>>
export type Waited = { settled: boolean; records: EventOutcome[] }
/** A claim repeated under its `claim_id` returns what is left of the first one. */
export type ClaimRequest = { claim_id?: string | undefined; limit: number; lease_s: number; types?: string[] | undefined }
/** The metrics of each reflex version in this scope. */
export type ScopeMetrics = {
  scope: string
  counters: Counters
  reflexes: { reflex_id: string; version: number; metrics: ReflexMetrics; certificate: Certificate | null }[]
}
/**
 * Recordings as JSON texts, oldest first; `next` is null on the last page. `replies`: the setting
 * that says what words mean.
 */
export type RecordingPage = { recordings: string[]; next: number | null; replies: Settings['learning']['replies'] }
export type Page<Item> = { items: Item[]; next_cursor: string | null } & PageGaps

/**
 * Entries as JSON. `next` is the `after` of the next page, or null at the end. `unavailable` says
 * why the entries of the archive cannot be read.
 */
export type LogRead = { entries: string[]; last_seq: number; next: number | null; unavailable?: string }

/** A request's place in its caller's trace: the trace, and the caller's span if there is one. */
export type TraceContext = { trace_id: string; parent_id: string | null } & TraceMarks

/** A scope's part of a trace: entries, the events that they are about, and parts by hash. */
export type TraceRecording = {
  scope: string
  agent: { name: string; version: string | null }
  deployment: string | null
  settings: Settings
  complete: boolean
  entries: LogEntry[]
  events: { seq: number; event: Event }[]
  parts: Record<string, unknown>
  /** Contexts of events on which no reflex ran, as one would have been shown, by event id. */
  contexts?: Record<string, unknown>
}
/** `contexts`: also the contexts of events on which no reflex ran, which takes longer. */
export type OfTrace = { trace_id: string; contexts: boolean }
/**
 * At most `limit` entries after a place, or from a time (ms) on. `lean`: without the contexts of
 * reflexes and the prompts of models, and of the events that a turn saw only the newest.
 */
export type LogRange = { since: number; after: number | null; limit: number; contexts?: boolean; lean?: boolean }
/** Entries of all traces. `next` and `unavailable` are as in LogRead. */
export type RangeRecording = TraceRecording & Pick<LogRead, 'next' | 'unavailable'>

/**
 * The millionths of a dollar of a shared budget that a scope has spent since `epoch`, and holds for
 * open calls.
 */
export type LeaseReport = { epoch: string; spent: number; held: number }
/** `need`: for the next call. `want`: for some more. `most`: the limits. */
export type LeaseAsked = LeaseReport & {
  scope: string
  need: number
  want: number
  most: { day: number | null; month: number | null }
}
/** `soon`: only what is reserved passes the limit. `near`: periods of which 80 % is spent now. */
export type LeaseAnswer = { near: ('day' | 'month')[] } & (
  | { ok: true; grant: number; n: number }
  | { ok: false; until: number; soon: boolean }
)

/** The outcome of a replay, for the log of the scope that was replayed. */
export type ReplayNote = Omit<Extract<EntryBody, { kind: 'replay-done' }>, 'kind' | 'by'>

/**
 * Entries of a trace or of some kinds. `related` adds those about events of the trace, of which it
 * may name some, such as turns of other traces. `contexts`: false if the caller does not read the
 * contexts of reflexes, which may then be null.
 */
export type LogFilter = {
  trace_id?: string | undefined
  kinds?: readonly string[] | undefined
  related?: readonly string[]
  contexts?: false
}

/** A page of events, newest first. `before`: the `next_cursor` of the previous page. */
export type EventsAsked = {
  limit: number
  before?: number | undefined
  status?: EventStatus | undefined
  type?: string | undefined
  partial?: boolean | undefined
}

/** The client of a socket or stream, in the header `x-reflex-connect`. */
export type Connect = {
  connection_id: string
  key_id: string
  source: string
  may_send: boolean
  decides_as: DecidedBy | null
  after: number | null
  /** For a stream: send the parts of answers, too. */
  parts?: true
  /** For a socket: a frame has all entries that follow, and not one. */
  units?: true
}

/** Part of the answer of a turn; `from` counts the characters before it. */
export type AnswerPart = { turn_id: string; from: number; content: string }

/** Close codes. `keyDeleted`: do not reconnect. `tooFarBehind`: the client is too slow. */
export const keyDeleted = { code: 4401, reason: 'the key that opened this socket was deleted or has expired' } as const
export const tooFarBehind = {
  code: 4008,
  reason: 'too much is unread: send each mark frame back, and resume with ?after=SEQ',
} as const

/** `tries`: turns that had failed to reach the model; null if the scope did not wait for it. */
export type Hurried = { tries: number | null; waiting_for_model: ModelWait | null }

/** A tool call on behalf of an operator. `key` makes the effect idempotent. */
export type OperatorCall = { tool: string; input: unknown; key: string; trace?: TraceContext | undefined }

/** `only`: the id of one skill. */
export type SkillsPageOf = { after: string; limit: number; only?: string }

/**
 * A proposal's run. `result` is a ProposalResult as JSON, or null while it runs. Times are in ms.
 */
export type SkillCall = { run_id: string; started_at: number; ended_at: number | null; result: string | null }

/**
 * The caller of a proposal. `trace` is the trace of the request. `call_id` names the call, so that
 * its run is found under the cause `call:ID`.
 */
export type ProposalCaller = {
  call_id?: string | undefined
  name: string
  key_id: string
  from: 'caller' | 'model'
  roles: string[]
  dry_run: boolean
  /** False: a run that needs approval is refused instead of waiting for it. */
  waits?: boolean | undefined
  /** A contract names the skill: it needs no cues of a conversation. */
  named?: boolean | undefined
  trace?: TraceContext | undefined
}

/** Work that holds a deployment-wide idempotency key: an effect by its journal row, or a run. */
export type KeyedWork = { kind: 'effect'; owner: string; phase: string; place: number } | { kind: 'run'; run_id: string }
export type KeyHolder = KeyedWork & { scope: string }
/** `output` is JSON, or null if it is too long to be kept. */
export type KeyedOutput = { output: string | null; output_bytes: number; at: number }
/** `free`: the work did not succeed and does not run, so that other work may take its key. */
export type WorkState = { state: 'running' } | { state: 'free' } | ({ state: 'done' } & KeyedOutput)

/** Calls that features answer. Each feature declares its own, in its `contract/`. */
// oxlint-disable-next-line typescript/no-empty-object-type, typescript/no-empty-interface -- features add to it
export interface FeatureCalls {}

/** The RPC interface of a Scope. Expected outcomes are data. Log entries are JSON text. */
export interface ScopeApi extends FeatureCalls {
  /**
   * `packs`: the caller packs the outcomes that it is answered with, and else has the same events
   * delivered again, or calls `unpacked`.
   */
  accept(events: Event[], via: Via, packs?: Packs): Promise<Accepted>
  /** The scope reports the outcomes of these events itself. */
  unpacked(ids: string[]): Promise<void>
  /** Waits at most `timeout_ms` for the outcomes of events; with a `sender`, of its own alone. */
  outcomes(ids: string[], timeout_ms: number, sender?: string): Promise<Waited>
  state(): Promise<ScopeState>
  /** Returns the newest events; `before` is the `next_cursor` of the previous page. */
  context(limit: number, before?: number): Promise<ContextView>
  /** The context as it was after the entry `at` of the log. */
  contextAt(at: number, limit: number, before?: number): Promise<PastContext>
  readLog(after: number, limit: number, before?: number, only?: LogFilter): Promise<LogRead>
  /**
   * JSON lines of the TraceRecording of a trace, null if the log does not name it; or JSON lines of
   * a RangeRecording. `traceRecording` and `rangeRecording` read them.
   */
  recording(of: OfTrace | LogRange): Promise<ReadableStream<Uint8Array> | null>
  /** Logs that a replay of this scope was made. `by` is a name. */
  replayed(note: ReplayNote, by: string, trace?: TraceContext): Promise<void>
  event(id: string): Promise<EventRecord | null>
  /** JSON of a Page of EventRecord, at most the byte limit of a page. */
  events(asked: EventsAsked): Promise<string>
  /** The filters, reflexes and models that decide on an event. */
  chain(): Promise<ScopeChain>
  /** The tools that the scope may use now, with their destinations. */
  tools(): Promise<ScopeTool[]>
  /** An event that retention has moved to the archive. */
  archivedEvent(id: string): Promise<Result<{ record: EventRecord | null }>>
  /** The manifest of the archive; `after` is the number of the last file of the previous page. */
  archivedFiles(after: number, limit: number): Promise<ArchivedFile[]>
  /** `by` is a name, for the log; `key_id` is the key that changes them. */
  configure(
    patch: SettingsPatch,
    by: string,
    key_id?: string,
    trace?: TraceContext,
  ): Promise<Result<{ settings: Settings }, Refused<'invalid'>>>
  /** The setting `event_types` as JSON. */
  eventTypes(): Promise<string>
  /** The setting `http_tools` as JSON. */
  httpTools(): Promise<string>
  /** The tools among these that destroy or overwrite, as their MCP servers say. */
  destroying(tools: string[]): Promise<string[]>
  claim(request: ClaimRequest, by: string): Promise<Result<{ deliveries: Delivery[] }, Refused<'not_pull'>>>
  /** Reverts a claim whose response could not be sent; returns the number of events. */
  giveBack(claim_id: string, why: string): Promise<number>
  ack(tokens: string[]): Promise<{ acked: string[]; stale: string[] }>
  nack(token: string, error: string): Promise<Result<{ status: string; due_at: string | null }, Refused<'stale'>>>
  cancel(reason: string, by: string, traceparent?: string): Promise<{ cancelled: boolean; turn_id: string | null; events: number }>
  askModel(by: string, trace?: TraceContext): Promise<Hurried>
  setTimer(
    name: string,
    schedule: Schedule,
    by: string,
    trace?: TraceContext,
  ): Promise<Result<{ created: boolean; timer: Timer }, Refused<'never_due' | 'too_many'>>>
  timers(): Promise<Timer[]>
  timer(name: string): Promise<Timer | null>
  removeTimer(name: string, by: string, trace?: TraceContext): Promise<boolean>
  /** Returns dead letters to pending and resets their attempts. */
  reopen(ids: string[], by: string, traceparent?: string): Promise<string[]>
  /** Removes dead letters from the list; their outcome stays `dead_lettered`. */
  discard(ids: string[], by: string, traceparent?: string): Promise<string[]>
  /** Notifies the scope that these reflexes have a new version or state. */
  reflexesChanged(ids: string[]): Promise<void>
  /** Recordings as JSON, oldest first. `next` is the `after` of the next page. */
  recordings(request: { since: number; after: number; limit: number }): Promise<RecordingPage>
  /** The identity of each tool call, as for the scope's effects. */
  identify(calls: ActionCall[]): Promise<(CallKeys | null)[]>
  metrics(): Promise<ScopeMetrics>
  /** Runs a proposal if allowed; returns a ProposalResult as JSON. */
  propose(proposal: { skill_id: string; inputs: Record<string, unknown>; why: string }, by: ProposalCaller): Promise<string>
  /**
   * The run that followed from a cause, `call:ID` or `approval:ID`; null before it has begun, and
   * after retention has deleted it. `stop` stops and compensates the run of a call; it is a name.
   */
  skillCall(cause: string, stop?: string): Promise<SkillCall | null>
  /** The bulletin that a model would get for this text, as JSON. */
  bulletin(text: string): Promise<string>
  /** A page of skills by id: JSON of `{goal_labels, tau?, skills: [{manifest, needed}], more}`. */
  skills(page: SkillsPageOf): Promise<string>
  /** The ids of all skills that fit here. */
  skillIds(): Promise<string[]>
  /** Calls a tool of the agent. `failed`: it failed, or its outcome is unknown. */
  callTool(call: OperatorCall, by: string): Promise<Result<object, Refused<'no_tool' | 'failed'>>>
  /** The state of work that holds a deployment-wide key, as this scope's journal has it. */
  workState(work: KeyedWork): Promise<WorkState>
  /** Gives back what the scope does not use of a shared budget. `n` numbers the change. */
  returnLease(name: string, n: number): Promise<LeaseReport>
  /** Consumes a ticket that the Worker has verified. */
  useTicket(nonce: string, expires_at: number): Promise<Result<object, Refused<'used' | 'too_many'>>>
  /** Recovers from a lost alarm; returns the next wake-up time in ms. */
  poke(): Promise<{ wake_at: number | null }>
}
