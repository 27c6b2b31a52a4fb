import type { Settings, SettingsPatch } from './settings.ts'
import type { Outcome, OutcomeStatus } from './event-record.ts'
import type { Schedule } from './schedule.ts'

/**
 * What every entry of a scope's log has. `span_id` is the span that the entry belongs to, `parent_id` the span that caused it, both 16 hex digits:
 * an event has a span, a turn has one, each effect and model call in it has one below the turn's. `at` is ISO in UTC, `duration_ms` null where
 * nothing was timed.
 */
export type EntryHead = {
  trace_id: string
  span_id: string
  parent_id: string | null
  event_ids: string[]
  duration_ms: number | null
}

export type Usage = { input_tokens: number; output_tokens: number; cost_usd: number | null; model_calls: number }
export type TurnEnd = 'result' | 'none' | 'failed' | 'timeout' | 'cancelled' | 'interrupted' | 'refused' | 'lost'
export type EffectEnd = 'ok' | 'failed' | 'unknown' | 'reused'
export type Cause = { turn_id: string } | { by: string }

/** The kind's own fields. Kinds are noun-verb; a new arm makes every exhaustive switch over kinds fail to compile. */
export type EntryBody =
  | { kind: 'event-accepted'; event_type: string; source: string; via: Via }
  | { kind: 'event-retried'; attempts: number; error: string; due_at: string }
  | { kind: 'event-ended'; status: OutcomeStatus; attempts: number; outcome: Outcome; error: string | null }
  | { kind: 'event-reopened'; by: string }
  | { kind: 'event-discarded'; by: string }
  | { kind: 'event-claimed'; attempts: number; lease_until: string; by: string }
  /** `saw` names what the decision is made from: the context's events as ranges of `seq`, how many, and the scratch. */
  | {
      kind: 'turn-started'
      turn_id: string
      agent: string
      attempts: number
      saw: { seqs: [number, number][]; count: number; scratch: unknown }
    }
  | {
      kind: 'turn-ended'
      turn_id: string
      status: TurnEnd
      result: unknown
      error: string | null
      cleared: number
      usage: Usage
      scratch: unknown
    }
  | {
      kind: 'model-called'
      turn_id: string
      model: string
      status: 'ok' | 'failed'
      prompt_hash: string
      content: unknown
      finish_reason: string | null
      error: string | null
      usage: Usage
    }
  | { kind: 'effect-started'; effect_id: string; tool: string; input: unknown; idempotence_key: string | null; cause: Cause }
  | {
      kind: 'effect-ended'
      effect_id: string
      tool: string
      status: EffectEnd
      output: unknown
      error: string | null
      idempotence_key: string | null
    }
  | { kind: 'reply-sent'; turn_id: string; content: string }
  | { kind: 'turn-cancelled'; turn_id: string; reason: string; by: string }
  | { kind: 'settings-changed'; by: string; patch: SettingsPatch; settings: Settings }
  | { kind: 'timer-set'; timer_name: string; schedule: Schedule; next_at: string; by: string }
  | { kind: 'timer-removed'; timer_name: string; by: string }
  | { kind: 'context-trimmed'; count: number; context_limit: number }

export type Via = 'http' | 'queue' | 'socket' | 'timer' | 'agent'
export type LogEntry = { seq: number; at: string } & EntryHead & EntryBody
/** An entry before it has its place in the log. */
export type NewEntry = EntryHead & EntryBody
export type EntryKind = EntryBody['kind']
