import type { Event } from '../core/event.ts'
import type { Action } from './action.ts'
import type { Waiting } from './waiting.ts'

export const outcomeStatuses = ['completed', 'ignored', 'dead_lettered', 'cancelled'] as const
export type OutcomeStatus = (typeof outcomeStatuses)[number]
export const eventStatuses = ['queued', 'pending', 'processing', ...outcomeStatuses] as const
export type EventStatus = (typeof eventStatuses)[number]

/**
 * How an event ended. `turn`: with the turn's id, and its result and failed calls once read (null: it decided to do nothing).
 * `failure`: with the stack of the error once read, where it has one. `reflex`: with its action
 * once read; `reused` where its key was carried out before. `perceive`: it joined the context of an agent
 * that starts no turn, or under the overlap policy `drop`.
 */
export type Outcome =
  | { by: 'filter' }
  | { by: 'perceive'; reason: string }
  | { by: 'turn'; turn_id: string; log_seq: number; result?: unknown; failed_calls?: FailedCall[] }
  | { by: 'reflex'; reflex_id: string; version: number; log_seq: number; reused?: true; action?: Action }
  | { by: 'pull' }
  | { by: 'cancel'; reason: string }
  | { by: 'failure'; reason: string; log_seq?: number; stack?: string; discarded?: boolean }

/** A call of a tool that failed in a turn; `attempts` counts the same call within the turn. */
export type FailedCall = { tool: string; error: string; attempts: number }

/** One event as its scope has it. Times are ISO in UTC. */
export type EventRecord = {
  event: Event
  status: EventStatus
  attempts: number
  error: string | null
  outcome: Outcome | null
  /** What an event without an outcome waits for. */
  waiting: Waiting | null
  accepted_at: string
  ended_at: string | null
}
