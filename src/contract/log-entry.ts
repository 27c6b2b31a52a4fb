import type { UsedLicence } from './licence.ts'
import type { Doubt } from './origin.ts'
import { z } from 'zod'
import type { Json, JsonFields } from '../base/json.ts'
import type { Action } from './action.ts'
import type { Act } from './reflex.ts'
import type { NoticeEntry } from '../features/notices/contract/notice.ts'
import type { AuditEntry } from './feedback.ts'
import type { ProvingEntry } from './certificate.ts'
import type { ReplayEntry } from '../features/replay/contract/replay.ts'
import type { DecisionMade } from '../features/decisions/contract/entry.ts'
import type { Settings, SettingsPatch } from './settings/settings.ts'
import type { FailedCall, FailedRun, Meeting, Outcome, OutcomeStatus, TraceMarks } from './event-record.ts'
import type { WorkKind } from './scope.ts'
import type { Schedule } from './settings/schedule.ts'

/** The common fields of log entries. Ids are hexadecimal, as in W3C trace context. */
const head = {
  trace_id: z.string(),
  span_id: z
    .string()
    .describe('The span of this entry. Each event and each turn has one; effects and model calls have one below the turn.'),
  parent_id: z.string().nullable().describe('The span that caused it.'),
  event_ids: z.array(z.string()).describe('The newest 100 of the events it is about, oldest first.'),
  event_count: z
    .int()
    .optional()
    .describe(
      'Number of events it is about, if `event_ids` does not list all. `turn-started` lists all in `considered`, as ranges of `seq`.',
    ),
  duration_ms: z.number().nullable().describe('Null if nothing was timed.'),
}
export const logEntry = z.looseObject({ seq: z.int(), at: z.iso.datetime(), kind: z.string(), ...head }).meta({
  id: 'LogEntry',
  description: 'The fields of its kind follow the common ones. Kinds are noun-verb: `event-accepted`, `turn-ended`, …',
})
/** `marks`: of the request that began the trace. They are passed on, and not in each entry. */
export type EntryHead = z.infer<z.ZodObject<typeof head>> & { marks?: TraceMarks }

/** An act that a sequence had done for the events of a turn before it failed. */
export type EarlierAct =
  | { tool: string; input: unknown; output: unknown }
  | { said: string }
  | { sent: JsonFields }
  | { ran: string; inputs: JsonFields; outputs: Json }

export type Usage = { input_tokens: number; output_tokens: number; cost_usd: number | null; model_calls: number }
export type TurnEnd = 'result' | 'none' | 'failed' | 'timeout' | 'cancelled' | 'interrupted' | 'refused' | 'waiting' | 'lost'
export type EffectEnd = 'ok' | 'failed' | 'unknown' | 'reused'
/** The step of a skill's run that an effect is. */
export type StepPlace = { run_id: string; phase: 'step' | 'compensation'; index: number }
export type Cause = { turn_id: string } | { by: string }

export type Requested = { by: string; traceparent?: string | undefined }

/**
 * The fields of each kind, whose meaning `traces/entries/table.ts` declares. A new kind makes every
 * exhaustive switch fail to compile.
 */
export type EntryBody =
  /** A request proposed a skill or called a tool: the root of what follows. */
  | ({ kind: 'call-received'; call: 'skill' | 'reflex' | 'tool'; name: string; by: string } & TraceMarks)
  /** `basis`: hash of the part with agent, deployment and settings. `joined`: the context. */
  | ({ kind: 'event-accepted'; event_type: string; source: string; via: Via; basis?: string; joined?: false } & Meeting & TraceMarks)
  | { kind: 'event-joined' }
  | { kind: 'event-retried'; attempts: number; error: string; due_at: string }
  /** `left`: it left the context, as cancelled and dead-lettered events do. */
  | { kind: 'event-ended'; status: OutcomeStatus; attempts: number; outcome: Outcome; error: string | null; left?: true }
  /** `traceparent`: of the request, whose trace is another one. */
  | ({ kind: 'event-reopened' } & Requested)
  | ({ kind: 'event-discarded' } & Requested)
  | { kind: 'event-claimed'; attempts: number; lease_until: string; by: string }
  /** The response to a claim could not be sent. `attempts` is the number before the claim. */
  | { kind: 'event-returned'; attempts: number; why: string }
  | { kind: 'filter-failed'; agent: string; error: string; stack: string | null }
  | { kind: 'model-lost'; status: number | null; error: string; retry_after_ms: number | null; ask_at: string }
  /** `tries`: turns that failed to reach the provider. */
  | { kind: 'model-restored'; since: string; waited_ms: number; tries: number }
  | { kind: 'model-hurried'; by: string; since: string; tries: number }
  /** Ranges of `seq`. `considered`: its own. `saw`: the context, except `hidden` events. */
  | {
      kind: 'turn-started'
      turn_id: string
      agent: string
      attempts: number
      considered: [number, number][]
      saw: {
        seqs: [number, number][]
        count: number
        scratch: unknown
        created_at?: number
        last_action_at?: number | null
        hidden?: number
      }
      /** The start in ms, from which `clock` counts. */
      since?: number
      basis?: string
      /** Acts that a reflex had done for its events before its sequence failed. */
      done?: EarlierAct[]
      /** It answers a request, and changes nothing of the context. */
      beside?: true
    }
  | {
      kind: 'turn-ended'
      turn_id: string
      /** `seq` of its `turn-started`. */
      started_seq: number
      status: TurnEnd
      result: unknown
      error: string | null
      stack?: string | null
      /** Tool calls that failed, however the turn ended. */
      failed_calls?: FailedCall[]
      failed_runs?: FailedRun[]
      cleared: number
      /** The places of the events that it cleared, if these are not all that it saw. */
      left?: [number, number][]
      usage: Usage
      scratch: unknown
      /** The acts of the turn, in the form that is compared with reflexes. */
      acts: Act[]
      /** It answered a request, and changed nothing of the context. */
      beside?: true
      /** Mistakes of the trigger without consequence, such as a call that was not awaited. */
      warnings?: string[]
      /** Readings of the clock in ms since the start, and answers of `deps.done`. */
      clock?: number[]
      done?: boolean[]
      /** Names of the tools that the scope and its settings offered beside the agent's. */
      offered?: string[]
    }
  | {
      kind: 'model-called'
      /** Null if a pinned parser was called outside a turn. */
      turn_id: string | null
      model: string
      status: 'ok' | 'failed'
      prompt_hash: string
      /** The hashes of the prompt's messages, which are stored once. */
      prompt?: string[]
      /** The hash of the offered tools and the call's options, which are stored once. */
      request?: string
      content: unknown
      finish_reason: string | null
      error: string | null
      usage: Usage
    }
  | (DecisionMade & { usage: Usage })
  | {
      kind: 'effect-started'
      effect_id: string
      tool: string
      input: unknown
      idempotence_key: string | null
      cause: Cause
      step?: StepPlace
      /** Destinations that no trusted origin names. */
      origins?: Doubt[]
      /** The trusted origins of other arguments, by their paths. */
      named_by?: Readonly<Record<string, string>>
    }
  | {
      kind: 'effect-ended'
      effect_id: string
      tool: string
      status: EffectEnd
      /** Only in the end of a reused effect, which has no `effect-started`. */
      input?: unknown
      /** Only in the end of a call by the user's own agent, which has no start either. */
      cause?: Cause
      output: unknown
      error: string | null
      stack?: string | null
      idempotence_key: string | null
      /** It failed, and its tool only reads: what follows may depend on that. */
      reads?: true
      /** The error allows a retry, and names the cost of the failed call. */
      retryable?: true
      cost_usd?: number
    }
  | { kind: 'reply-sent'; turn_id: string | null; reflex_id: string | null; content: string }
  /**
   * `context` is null if the previous entry has it under the same `context_hash`. `reused`: its
   * key was carried out before.
   */
  | ({ kind: 'reflex-fired'; action: Action; reused?: true; licence?: UsedLicence } & ReflexRunEntry)
  | ({ kind: 'reflex-passed'; reason: PassReason; error: string | null; detail?: string } & ReflexRunEntry)
  | {
      kind: 'action-ended'
      reflex_id: string
      version: number
      action_type: Action['action_type']
      status: EffectEnd
      error: string | null
      /** The acts of a sequence that were begun, in their order. */
      acts?: { action_type: Action['action_type']; status: EffectEnd }[]
    }
  | { kind: 'scratch-set'; key: string; value: unknown; reflex_id: string }
  | ({ kind: 'turn-cancelled'; turn_id: string; reason: string } & Requested)
  | { kind: 'settings-changed'; by: string; patch: SettingsPatch; settings: Settings }
  | ({ kind: SkillEntryKind } & { [field: string]: unknown })
  | ProvingEntry
  | AuditEntry
  | { kind: 'timer-set'; timer_name: string; schedule: Schedule; next_at: string; by: string }
  | { kind: 'timer-removed'; timer_name: string; by: string }
  | { kind: 'clock-corrected'; ahead_ms: number }
  | { kind: 'work-parked'; work: WorkKind; id: string; deaths: number; reason: string }
  | ReplayEntry
  | NoticeEntry
  | { kind: 'timer-skipped'; timer_name: string; due_at: string; reason: string }
  /** `kept`: the whole context after it, as ranges of `seq`. */
  | ({ kind: 'context-trimmed'; count: number; context_limit: number } & Partial<{
      kept: [number, number][]
      scratch: unknown
      last_action_at: number | null
    }>)

/** `version` is null if the chain names a reflex that does not exist. */
type ReflexRunEntry = {
  reflex_id: string
  version: number | null
  hash: string | null
  state: 'active' | 'shadow' | null
  context_hash: string | null
  context: unknown
  fuel: number
  duration_us: number
  /** The state that the limits of its reference were checked against, if it has any. */
  pace?: { last_at: number | null; minute: number; fired: number }
}
/**
 * `refused`: not allowed here. `cooldown`, `rate`: the chain's limits. `suspended`: it failed too
 * often. `uncertified`: its proof does not reach the action. `fuel`: the call's fuel is used up.
 * `too_large`: the input limit.
 */
export type PassReason =
  | 'null'
  | 'error'
  | 'limit'
  | 'invalid_action'
  | 'refused'
  | 'cooldown'
  | 'rate'
  | 'missing'
  | 'suspended'
  | 'uncertified'
  | 'fuel'
  | 'too_large'

/** Kinds of entries of skill sessions, which define their fields. */
const skillEntryKinds = [
  'bulletin-built',
  'blackboard-seeded',
  'blackboard-changed',
  'skills-degraded',
  'skills-restored',
  'skill-decided',
  'skill-refused',
  'skill-slots-parsed',
  'skill-guard-evaluated',
  'skill-started',
  'skill-resumed',
  'skill-reused',
  'skill-step-ended',
  'skill-compensation-ended',
  'skill-applied',
  'approval-requested',
  'approval-decided',
] as const
export type SkillEntryKind = (typeof skillEntryKinds)[number]

export type Via = 'http' | 'queue' | 'socket' | 'timer' | 'agent' | 'reflex' | 'ledger' | 'approval'
export type LogEntry = { seq: number; at: string } & EntryHead & EntryBody
export type NewEntry = EntryHead & EntryBody
export type EntryKind = EntryBody['kind']
export type EntryOf<Kind extends EntryKind> = Extract<LogEntry, { kind: Kind }>
/** A run of a reflex. */
export type ReflexEntry = EntryOf<'reflex-fired' | 'reflex-passed'>
