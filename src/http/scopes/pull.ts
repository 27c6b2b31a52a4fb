import { createHash } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import { limits } from '../../base/limits.ts'
import type { ScopeApi } from '../../contract/scope-api.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes, scopePath } from '../describe/describe.ts'
import { conflict } from '../problems/refusals.ts'
import { event } from '../../contract/event-record.ts'
import { warn } from '../../base/warn.ts'

const route = routes('Pull loop')
const token = z.string().min(1).max(256)
const deliveries = z.array(z.object({ event, ack_token: z.string(), attempts: z.int() }))
type Claimed = { deliveries: z.infer<typeof deliveries> }

const claim = route('post /v1/scopes/{scope}/claim', 'claimEvents', 'Claim events', {
  description:
    'For scopes whose setting `consumer` is `pull`. Returns the oldest due events, each under a lease. An event that is not acknowledged before its lease expires goes to ' +
    'the next claim and counts as an attempt. A response holds at most 4 MB of events; the rest stays pending. ' +
    'Give each claim a unique `claim_id`. If its response is lost, repeat the claim with the same id: the remaining events are returned with a new lease, ' +
    'without counting an attempt. If the server itself fails to send the response, it returns the events immediately.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'optional' }),
  request: {
    params: scopePath,
    body: jsonRequest(
      z.strictObject({
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
      { limit: 10, lease_s: 60, claim_id: 'worker-1:0042' },
    ),
  },
  responses: { 200: json(z.object({ deliveries }), 'The claimed events; empty if none is due.'), ...problems(400, 409, 413, 415) },
})

const ack = route('post /v1/scopes/{scope}/ack', 'acknowledgeEvents', 'Acknowledge claimed events', {
  description: 'The events end as `completed`. A token that was already settled, or whose lease has expired, is stale and changes nothing.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    body: jsonRequest(z.strictObject({ ack_tokens: z.array(token).min(1).max(limits.claim) }), {
      ack_tokens: ['the ack_token of a delivery'],
    }),
  },
  responses: {
    200: json(z.object({ acked: z.array(z.string()), stale: z.array(z.string()) }), 'The tokens that were accepted, and the stale ones.'),
    ...problems(400, 413, 415),
  },
})

const nack = route('post /v1/scopes/{scope}/nack', 'rejectEvents', 'Reject a claimed event', {
  description: 'It is retried with backoff, or becomes a dead letter once its attempts are used up.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'report' }),
  request: {
    params: scopePath,
    body: jsonRequest(z.strictObject({ ack_token: token, error: z.string().max(10_000).default('refused by its consumer') }), {
      ack_token: 'the ack_token of a delivery',
      error: 'the printer is out of paper',
    }),
  },
  responses: {
    200: json(
      z.object({ status: z.string(), due_at: z.iso.datetime().nullable() }),
      'New status: `pending` until `due_at`, or `dead_lettered`.',
    ),
    ...problems(400, 409, 413, 415),
  },
})

export const pullRoutes = resource()
  .openapi(claim, async (c) => {
    const { claim_id: given, ...which } = c.req.valid('json')
    const { scope, principal } = c.var
    const claim_id = given === undefined ? crypto.randomUUID() : tokenOf(principal.key_id, given)
    const giveBack = (why: string) => returnClaim(c.env.SCOPE.getByName(scope), { scope, claim_id, why })
    const claimed = await c.env.SCOPE.getByName(scope)
      .claim({ ...which, claim_id }, principal.name)
      .catch(async (error: unknown) => {
        await giveBack('the scope did not answer the claim')
        throw error
      })
    if (!claimed.ok) throw conflict('not-pull', claimed.detail)
    const lost = () => c.executionCtx.waitUntil(giveBack('the connection broke before the answer was sent'))
    return jsonText<Claimed>(wholeOrLost(JSON.stringify({ deliveries: claimed.deliveries }), lost))
  })
  .openapi(ack, async (c) => c.json(await c.env.SCOPE.getByName(c.var.scope).ack(c.req.valid('json').ack_tokens), 200))
  .openapi(nack, async (c) => {
    const { ack_token, error } = c.req.valid('json')
    const refused = await c.env.SCOPE.getByName(c.var.scope).nack(ack_token, error)
    if (!refused.ok) throw conflict('stale-token', refused.detail)
    return c.json({ status: refused.status, due_at: refused.due_at }, 200)
  })

/** Adds the key to the id, so that consumers with equal ids do not share a claim. */
const tokenOf = (key_id: string, claim_id: string): string =>
  createHash('sha256').update(`${key_id} ${claim_id}`).digest('hex').slice(0, 32)

/** If this fails as well, the lease expires and the attempt counts. */
async function returnClaim(stub: ScopeApi, { scope, claim_id, why }: { scope: string; claim_id: string; why: string }) {
  try {
    await stub.giveBack(claim_id, why)
  } catch (error) {
    warn({ message: 'failed to return a claim; its lease will expire', scope, error })
  }
}

const CHUNK_BYTES = 64 * 1024

/** Sends a text; calls `lost` if the connection breaks first, unless network buffers hide it. */
function wholeOrLost(text: string, lost: () => void): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text)
  let taken = 0
  return new ReadableStream(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(taken, taken + CHUNK_BYTES))
        taken += CHUNK_BYTES
        if (taken >= bytes.length) controller.close()
      },
      cancel: lost,
    },
    { highWaterMark: 0 },
  )
}
