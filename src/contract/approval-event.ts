import { z } from 'zod'
import { eventType } from '../core/event.ts'

export const APPROVAL_ENDED = 'approval.ended'

/**
 * The end of an approval of a run. The scope itself makes the event, if the setting
 * `approval_events` says so, and takes it from nobody else.
 */
export const approvalEnded = eventType(APPROVAL_ENDED, {
  approval_id: z.string(),
  skill_id: z.string(),
  version: z.string(),
  /** Redacted fields are masked, as in the log. */
  inputs: z.record(z.string(), z.unknown()),
  decision: z.enum(['approved', 'rejected', 'expired']),
  by: z.string().nullable(),
  reason: z.string().nullable(),
  /** Null unless it was approved. */
  run: z.nullable(
    z.object({
      run_id: z.string().nullable(),
      status: z.string(),
      reason: z.string().nullable(),
      outputs: z.record(z.string(), z.unknown()),
    }),
  ),
  shortened: z.literal(true).optional(),
})
