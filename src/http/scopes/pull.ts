import { createHash } from 'node:crypto'
import { createRoute, z } from '@hono/zod-openapi'
import { limits } from '../../base/limits.ts'
import type { ScopeApi } from '../../contract/scope-api.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, scopePath } from '../describe/describe.ts'
import { conflict } from '../problems/refusals.ts'
import { event } from '../describe/schemas.ts'
import { wholeOrLost } from '../body/whole-or-lost.ts'
import { warn } from '../../base/warn.ts'

const tags = ['Pull loop']
const token = z.string().min(1).max(256)
const deliveries = z.array(z.object({ event, ack_token: z.string(), attempts: z.int() }))
type Claimed = { deliveries: z.infer<typeof deliveries> }

const claim = createRoute({
  method: 'post',
  path: '/v1/scopes/{scope}/claim',
  operationId: 'claimEvents',
  tags,
  summary: 'Claim events',
  description:
    'For a scope whose setting `consumer` is `pull`: the oldest events that are due, each under a lease. What is not acknowledged before the lease runs out goes to ' +
    'the next claim, and the attempt counts. An answer holds at most 4 MB of events: what is beyond that stays pending. ' +
    'Give each claim a `claim_id` of its own, and where its answer is lost claim again under the same: what is left of it comes again, with a new lease, ' +
    'and no attempt counts. Where the server itself cannot send the answer, it gives the events back at once.',
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
          .meta({ description: 'Names this claim among those of your key, so that it can be repeated.' }),
      }),
      { limit: 10, lease_s: 60, claim_id: 'worker-1:0042' },
    ),
  },
  responses: { 200: json(z.object({ deliveries }), 'What was claimed: nothing, where nothing waits.'), ...problems(400, 409, 413, 415) },
})

const ack = createRoute({
  method: 'post',
  path: '/v1/scopes/{scope}/ack',
  operationId: 'acknowledgeEvents',
  tags,
  summary: 'Acknowledge claimed events',
  description: 'They end as `completed`. A token that was settled already, or whose lease has run out, is stale and changes nothing.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    body: jsonRequest(z.strictObject({ ack_tokens: z.array(token).min(1).max(limits.claim) }), {
      ack_tokens: ['the ack_token of a delivery'],
    }),
  },
  responses: {
    200: json(z.object({ acked: z.array(z.string()), stale: z.array(z.string()) }), 'Each token, as it was taken.'),
    ...problems(400, 413, 415),
  },
})

const nack = createRoute({
  method: 'post',
  path: '/v1/scopes/{scope}/nack',
  operationId: 'rejectEvents',
  tags,
  summary: 'Give a claimed event back',
  description: 'It is retried with backoff, or goes to the dead letters once its attempts are spent.',
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
      'Where it went: `pending` until `due_at`, or `dead_lettered`.',
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

/** An id of one key's own: two consumers that choose the same one do not get each other's events. */
const tokenOf = (key_id: string, claim_id: string): string =>
  createHash('sha256').update(`${key_id} ${claim_id}`).digest('hex').slice(0, 32)

/** If this fails as well, the lease ends, and the attempt counts after all. */
async function returnClaim(stub: ScopeApi, { scope, claim_id, why }: { scope: string; claim_id: string; why: string }) {
  try {
    await stub.giveBack(claim_id, why)
  } catch (error) {
    warn({ message: 'a claim could not be given back', scope, error })
  }
}
