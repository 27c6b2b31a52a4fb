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
    done: z.int().describe('Retried or discarded ones. After a restart of the server it may be less than there were.'),
    failed: z.int().describe('Letters that could not be retried: they stay.'),
    error: z.string().nullable().describe('Why the last of these could not be.'),
  })
  .meta({ id: 'DeadLetterJob' })
export type LetterJob = z.infer<typeof letterJob>
