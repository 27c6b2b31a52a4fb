import { z } from 'zod'
import { operations } from '../../../contract/operation.ts'
import { which } from '../../../contract/operations/dead-letters.ts'
import { byId } from '../../../contract/operations/shared.ts'
import { letterJob, verbs } from '../contract/jobs.ts'

const operation = operations({ tag: 'Dead letters', roles: ['operator'] })

export const start = operation('post /v1/dlq/jobs', 'startDeadLetterJob', 'Retry or discard many dead letters', {
  description:
    'Retries or discards all dead letters that match and are there now. The server does it, also when the caller leaves: `GET /v1/dlq/jobs/{id}` has the progress.',
  body: z.strictObject({
    verb: z.enum(verbs),
    ...which,
    ids: z.array(z.string().min(1).max(128)).min(1).max(1000).optional().describe('Only these.'),
  }),
  example: { verb: 'retry', scope: 'default' },
  answers: { 202: [letterJob, 'The job has started.'] },
})

export const find = operation('get /v1/dlq/jobs/{id}', 'getDeadLetterJob', 'Get a job on dead letters', {
  description: 'Only for the key that started it, and for keys of all scopes.',
  ...byId(letterJob, 'The job.'),
})
