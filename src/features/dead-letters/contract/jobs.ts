import { z } from 'zod'

const time = z.iso.datetime()

export const verbs = ['retry', 'discard'] as const

export const letterJob = z
  .object({
    id: z.string(),
    verb: z.enum(verbs),
    by: z.string(),
    started_at: time,
    ended_at: time.nullable().describe('Null while it runs.'),
    total: z.int().describe('The letters that matched when it started.'),
    done: z.int().describe('Retried or discarded ones.'),
    failed: z.int().describe('Letters that could not be retried, or that were left when the key of the job ended: they stay.'),
    gone: z
      .int()
      .describe(
        'Once it has ended: letters that were not there any more. Another job or a person took them first, or this one before a restart of the server.',
      ),
    error: z.string().nullable().describe('Why the last of these could not be.'),
  })
  .meta({ id: 'DeadLetterJob' })
export type LetterJob = z.infer<typeof letterJob>
