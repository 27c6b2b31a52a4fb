import { z } from 'zod'
import { limits } from '../../base/limits.ts'
import { event } from '../event-record.ts'
import { operations } from '../operation.ts'
import { scopePath } from './shared.ts'

const operation = operations({ tag: 'Pull loop', roles: ['publisher'], scoped: true })
const token = z.string().min(1).max(256)

export const claim = operation('post /v1/scopes/{scope}/claim', 'claimEvents', 'Claim events', {
  description:
    'For scopes whose setting `consumer` is `pull`. Returns the oldest due events, each under a lease. An event that is not acknowledged before its lease expires goes to ' +
    'the next claim and counts as an attempt. A response holds at most 4 MB of events; the rest stays pending. ' +
    'Give each claim a unique `claim_id`. If its response is lost, repeat the claim with the same id: the remaining events are returned with a new lease, ' +
    'without counting an attempt. If the server itself fails to send the response, it returns the events immediately.',
  params: scopePath,
  body: z.strictObject({
    limit: z.int().min(1).max(limits.claim).default(100),
    lease_s: z.number().min(1).max(43_200).default(30),
    types: z.array(z.string().min(1).max(128)).min(1).max(100).optional(),
    claim_id: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe('Identifies this claim among the claims of your key, so that it can be repeated.'),
  }),
  takes: 'defaulted',
  example: { limit: 10, lease_s: 60, claim_id: 'worker-1:0042' },
  answers: {
    200: [
      z.object({ deliveries: z.array(z.object({ event, ack_token: z.string(), attempts: z.int() })) }),
      'The claimed events; empty if none is due.',
    ],
  },
  problems: [409],
})

export const ack = operation('post /v1/scopes/{scope}/ack', 'acknowledgeEvents', 'Acknowledge claimed events', {
  description: 'The events end as `completed`. A token that was already settled, or whose lease has expired, is stale and changes nothing.',
  params: scopePath,
  body: z.strictObject({ ack_tokens: z.array(token).min(1).max(limits.claim) }),
  example: { ack_tokens: ['the ack_token of a delivery'] },
  answers: {
    200: [z.object({ acked: z.array(z.string()), stale: z.array(z.string()) }), 'The tokens that were accepted, and the stale ones.'],
  },
})

export const nack = operation('post /v1/scopes/{scope}/nack', 'rejectEvents', 'Reject a claimed event', {
  description: 'It is retried with backoff, or becomes a dead letter once its attempts are used up.',
  params: scopePath,
  body: z.strictObject({ ack_token: token, error: z.string().max(10_000).default('refused by its consumer') }),
  takes: 'report',
  example: { ack_token: 'the ack_token of a delivery', error: 'the printer is out of paper' },
  answers: {
    200: [
      z.object({ status: z.string(), due_at: z.iso.datetime().nullable() }),
      'New status: `pending` until `due_at`, or `dead_lettered`.',
    ],
  },
  problems: [409],
})
