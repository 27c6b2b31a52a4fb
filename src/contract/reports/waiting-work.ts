import { z } from 'zod'
import { approval } from '../approval.ts'
import { deadLetter } from '../event-record.ts'

/** The work that waits for a person, without inputs, words and content: for every viewer. */
export const waitingWork = z
  .object({
    approvals: z.array(
      approval.pick({
        id: true,
        scope: true,
        kind: true,
        skill_id: true,
        version: true,
        requested_by: true,
        created_at: true,
        expires_at: true,
      }),
    ),
    dead_letters: z.array(
      deadLetter.pick({
        id: true,
        origin: true,
        scope: true,
        event_id: true,
        type: true,
        error: true,
        attempts: true,
        dead_lettered_at: true,
      }),
    ),
    more: z
      .object({ approvals: z.boolean(), dead_letters: z.boolean() })
      .describe('True where older ones are left out. Keys with the role `operator` list all.'),
  })
  .meta({ id: 'WaitingWork' })
export type WaitingWork = z.infer<typeof waitingWork>
