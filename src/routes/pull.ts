import { createRoute, z } from '@hono/zod-openapi'
import { limits } from '../protocol/limits.ts'
import { guard, json, jsonRequest, problems, resource, scopePath } from './describe.ts'
import { conflict } from './refusals.ts'
import { event } from './schemas.ts'

const tags = ['Pull loop']
const token = z.string().min(1).max(256)
const deliveries = z.array(z.object({ event, ack_token: z.string(), attempts: z.int() }))

const claim = createRoute({
  method: 'post',
  path: '/v1/scopes/{scope}/claim',
  operationId: 'claimEvents',
  tags,
  summary: 'Claim events',
  description:
    'For a scope whose setting `consumer` is `pull`: the oldest events that are due, each under a lease. What is not acknowledged before the lease runs out goes to ' +
    'the next claim, and the attempt counts.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'optional' }),
  request: {
    params: scopePath,
    body: jsonRequest(
      z.strictObject({
        limit: z.int().min(1).max(limits.claim).default(100),
        lease_s: z.number().min(1).max(43_200).default(30),
        types: z.array(z.string().min(1).max(128)).min(1).max(100).optional(),
      }),
      { limit: 10, lease_s: 60 },
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
  ...guard({ roles: ['publisher'], scoped: true, body: 'json' }),
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
    const { scope, principal } = c.var
    const claimed = await c.env.SCOPE.getByName(scope).claim(c.req.valid('json'), principal.name)
    if (!claimed.ok) throw conflict('not-pull', claimed.detail)
    return c.json({ deliveries: claimed.deliveries }, 200)
  })
  .openapi(ack, async (c) => c.json(await c.env.SCOPE.getByName(c.var.scope).ack(c.req.valid('json').ack_tokens), 200))
  .openapi(nack, async (c) => {
    const { ack_token, error } = c.req.valid('json')
    const refused = await c.env.SCOPE.getByName(c.var.scope).nack(ack_token, error)
    if (!refused.ok) throw conflict('stale-token', refused.detail)
    return c.json({ status: refused.status, due_at: refused.due_at }, 200)
  })
