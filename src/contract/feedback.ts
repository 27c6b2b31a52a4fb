import { z } from 'zod'
import type { DryAct, DryEnd, DryView } from './dry-turn.ts'
import type { Action } from './action.ts'
import type { Act, Decision } from './reflex.ts'

type DryUsage = { input_tokens: number; output_tokens: number; cost_usd: number | null; model_calls: number }

/**
 * Why a decision is audited. `drawn`: by the setting. `first`: soon after its proof. `due`: many
 * acts that reach outside went by without an audit. `new`: its proof has not seen such a value.
 * `edge`: with a number a little lower or higher it would have decided otherwise.
 */
export type AuditOccasion = 'drawn' | 'first' | 'due' | 'new' | 'edge'

/** `reply`: a corrected reply. `rejected`: an approval. `overruled`: by a turn or a person. */
const judgedBy = ['audit', 'overruled', 'rejected', 'feedback'] as const
export type JudgedBy = (typeof judgedBy)[number]

export const feedback = z
  .strictObject({
    right: z.boolean().describe('False if the decision about the event was wrong.'),
    reply: z.string().min(1).max(16_384).optional().describe('The reply that would have been right, for what is learned. It is not sent.'),
    reason: z.string().min(1).max(1000).optional(),
  })
  .refine(({ right, reply }) => !right || reply === undefined, 'a reply that is right needs no other one')
export type Feedback = z.infer<typeof feedback>

const decided = z.object({ by: z.enum(['reflex', 'turn']), reflex_id: z.string().optional(), version: z.int().optional() })
export const judged = z
  .object({
    decided,
    counted: z.boolean().describe('True if it counts in the metrics or the certificate of the reflex that decided.'),
  })
  .meta({ id: 'JudgedDecision' })
export type AuditedDecision = z.infer<typeof judged>

export type AuditEntry =
  /** A person's judgement of the decision on an event, which is the entry `log_seq`. */
  | {
      kind: 'decision-judged'
      right: boolean
      reply: string | null
      reason: string | null
      by: string
      decided: AuditedDecision['decided']
      log_seq: number | undefined
    }
  /** The slow path was asked again. Nothing that it did had an effect. */
  | ({
      kind: 'dry-turn-ended'
      why: 'audit' | 'asked-again'
      turn_id: string
      agent: string
      status: DryEnd
      error: string | null
      result: unknown
      acts: Act[]
      did: DryAct[]
      usage: DryUsage
      warnings?: string[]
    } & DryView)
  /** An act of a reflex and what the slow path or a person says about it. */
  | {
      kind: 'reflex-audited'
      reflex_id: string
      version: number
      event_type: string
      judged_by: JudgedBy
      /** Why the slow path was asked; missing for people, who ask by themselves. */
      occasion?: AuditOccasion
      /** The name of a person; null for the slow path. */
      by: string | null
      own: Action
      decided: Decision | null
      /** Null if it could not be compared. */
      agreed: boolean | null
      reason?: string
      usage?: DryUsage | undefined
    }

/** The most events of one call of `askAgain`. */
export const MOST_ASKED = 20

/**
 * The slow path's answer to what it decided on before. `event_ids`: all events of that turn, whose
 * acts these are together. `log_seq`: the entry `dry-turn-ended`.
 */
export type AskedAgain =
  | { event_id: string; ok: true; event_ids: string[]; acts: Act[]; did: DryAct[]; usage: DryUsage; log_seq: number }
  /**
   * `undecided`: no turn decided about it. `gone`: retention has deleted what the turn saw.
   * `later`: the model or its budget is not available, or too many events were given.
   */
  | { event_id: string; ok: false; reason: 'unknown' | 'undecided' | 'gone' | 'later' | 'failed'; detail: string }
