import { createRoute, z } from '@hono/zod-openapi'
import { issueTicket as signTicket, principalOf, ticketSecretOf, verifyTicket } from '../auth/ticket.ts'
import { deciderOf, hasRole, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { randomHex } from '../../core/event.ts'
import { keyDeleted } from '../../contract/key-deleted.ts'
import { limits } from '../../base/limits.ts'
import { Problem } from '../../contract/problem.ts'
import type { Connect } from '../../contract/scope-api.ts'
import { tooFarBehind } from '../../contract/too-far-behind.ts'
import { guard, json, problems, resource, scopePath } from '../describe/describe.ts'
import { conflict, unavailable } from '../problems/refusals.ts'

const tags = ['Live']
const seq = z.coerce.number<string>().int().min(0).optional()
const after = seq.meta({ description: 'The last `seq` seen: what the log has since comes first. Without it, only what is new comes.' })
const ticket = z.string().optional().meta({ description: 'A one-time ticket, instead of a key.' })

const socket = createRoute({
  method: 'get',
  path: '/v1/scopes/{scope}/ws',
  operationId: 'openSocket',
  tags,
  summary: 'Open a WebSocket',
  description:
    'JSON both ways. **In** (role publisher): an event, or `{"content": "…"}`, which is a `ws.message` of this connection; with the role operator also ' +
    '`{"type": "approve" or "reject", "approval_id", "reason"?}`. **Out**: `{"type": "ack", "id", "status"}` once an event is durable or a decision is taken; `{"type": "error", "errors"}` for input that is not valid, and the socket stays open; `{"type": "log", "entry"}` for ' +
    'whatever the log records; `{"type": "delta", "turn_id", "content"}` for pieces of an answer that is being made, and with `event_id` for a reflex\'s whole answer, ahead of its entry `reply-sent`. `ping` is answered with `pong`. Where no header can be set, as in a browser, ask for a ticket ' +
    'and pass it as `?ticket=`. The first frame is `{"type": "open", "seq"}`: the entries that come are those after this `seq`. Resume with `?after=SEQ`, the last `seq` of an ' +
    `entry, or of \`open\` where none came yet, and nothing is missed. A socket whose key was deleted is closed with ${keyDeleted.code} (${keyDeleted.reason}), ` +
    'within a minute of its use: opening it again with that key is refused. After every 64 kB there comes `{"type": "mark", "sent"}`: **send it back as it is**, once ' +
    `what came before it is dealt with. The scope sends at most ${limits.unread_bytes / 1024} kB ahead of the last mark that came back, and goes on from the log when the next one does; ` +
    `where none comes for 30 s, or none ever came for 5 s, the socket is closed with ${tooFarBehind.code}, and \`?after=SEQ\` resumes without a gap. A socket takes ${limits.socket_messages_per_second} messages a second; ` +
    `what is beyond that is answered with an error. A key has at most ${limits.connections_per_key} sockets and streams open on one scope (429).`,
  ...guard({ roles: ['publisher', 'viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      after,
      ticket,
      connection_id: z.string().min(1).max(128).optional().meta({ description: "Names this connection; else it is the key's name." }),
    }),
  },
  responses: {
    101: { description: 'The socket is open.' },
    426: { description: 'The request is no upgrade to a WebSocket.' },
    ...problems(400, 503),
  },
})

const stream = createRoute({
  method: 'get',
  path: '/v1/scopes/{scope}/stream',
  operationId: 'streamLog',
  tags,
  summary: 'Follow the log as server-sent events',
  description:
    'Each event is named `log`, its `id` is the `seq`, its data the entry. A `Last-Event-ID` header resumes, as an EventSource sends it by itself: from the ' +
    'beginning on, for the stream begins with the `id` that its first entry comes after. A stream whose key was deleted ends within a minute or so, and so does one from which nothing was read for a minute.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath, query: z.object({ after, ticket }) },
  responses: {
    200: { description: 'The stream.', content: { 'text/event-stream': { schema: z.string() } } },
    ...problems(400),
  },
})

const issueTicket = createRoute({
  method: 'post',
  path: '/v1/scopes/{scope}/tickets',
  operationId: 'createTicket',
  tags,
  summary: 'Get a one-time ticket',
  description:
    'Good for one connection to this scope, for 60 s, with the base roles of the key that asked for it. If that key is deleted, the connection ends. ' +
    'It is signed by the deployment, with `REFLEX_TICKET_SECRET` or a key derived from `REFLEX_ADMIN_KEY`: replacing that secret ends the tickets that are not used yet. 409: neither is set.',
  ...guard({ roles: ['viewer', 'publisher'], scoped: true }),
  request: { params: scopePath },
  responses: { 201: json(z.object({ ticket: z.string(), expires_at: z.iso.datetime() }), 'The ticket.'), ...problems(400, 409) },
})

export const socketRoutes = resource()
  .openapi(socket, async (c) => {
    if (c.req.header('Upgrade')?.toLowerCase() !== 'websocket') throw upgradeRequired()
    const { scope, principal } = c.var
    const { after = null, connection_id = principal.name } = c.req.valid('query')
    const connect = {
      connection_id,
      key_id: principal.key_id,
      source: principal.name,
      may_send: hasRole(principal, 'publisher'),
      decides_as: deciderOf(principal),
      after,
    }
    return open(c.env, scope, connect, { Upgrade: 'websocket' })
  })
  .openapi(stream, async (c) => {
    const { scope, principal } = c.var
    const after = lastEventId(c.req.header('Last-Event-ID')) ?? c.req.valid('query').after ?? null
    const { key_id, name } = principal
    return open(c.env, scope, { connection_id: name, key_id, source: name, may_send: false, decides_as: null, after })
  })
  .openapi(issueTicket, async (c) => {
    const { scope, principal } = c.var
    const secret = ticketSecretOf(c.env)
    if (secret === null) throw conflict('tickets-not-configured', NO_TICKETS)
    const { ticket, expires_at } = await signTicket(secret, { scope, principal, nonce: randomHex(16), now: Date.now() })
    c.header('Cache-Control', 'no-store')
    return c.json({ ticket, expires_at: new Date(expires_at).toISOString() }, 201)
  })

/** Whose connection this is. The object trusts this header, so nothing of the caller's own request is passed on. */
async function open(env: Env, scope: string, connect: Connect, headers: Record<string, string> = {}): Promise<Response> {
  const opening = { ...headers, 'x-reflex-connect': ascii(JSON.stringify(connect)) }
  const response = await env.SCOPE.getByName(scope).fetch('https://scope/', { headers: opening })
  if (response.status === 429) throw tooManyConnections(scope)
  if (response.status === 503)
    throw unavailable(`The scope ${scope} has as many open sockets or streams as it may have. Close some, or try again later.`)
  return response
}

/**
 * The scope's object is asked only about a ticket that this deployment signed for it: a made-up one
 * costs no object.
 */
export async function redeemTicket(env: Env, scope: string, ticket: string): Promise<Principal | null> {
  const claims = await verifyTicket(ticketSecretOf(env), scope, ticket, Date.now())
  if (!claims) return null
  const used = await env.SCOPE.getByName(scope).useTicket(claims.nonce, claims.expires_at)
  if (used.ok) return principalOf(claims)
  if (used.reason === 'too_many') throw tooManyTickets(scope, used.detail)
  return null
}

/** A header carries no more; JSON can say the rest with escapes. */
const ascii = (json: string): string => json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** One that is none of ours is as good as none: an EventSource could not do anything about a refusal. */
const lastEventId = (header: string | undefined): number | undefined => (/^\d{1,15}$/.test(header ?? '') ? Number(header) : undefined)

const NO_TICKETS =
  'This deployment has no secret to sign tickets with: set REFLEX_TICKET_SECRET or REFLEX_ADMIN_KEY (`wrangler secret put REFLEX_TICKET_SECRET`).'

const tooManyTickets = (scope: string, detail: string): Problem =>
  new Problem({
    status: 429,
    type: 'urn:reflex:problem:too-many-requests',
    title: 'Too many requests',
    detail: `No further ticket is accepted in ${scope} now: ${detail}. Ask for a new one in a minute.`,
    headers: { 'Retry-After': '60' },
  })

const tooManyConnections = (scope: string): Problem =>
  new Problem({
    status: 429,
    type: 'urn:reflex:problem:too-many-connections',
    title: 'Too many connections',
    detail:
      `This key has ${limits.connections_per_key} sockets and streams open on the scope ${scope}, and may have no more. ` +
      'Close some, or try again once those that are gone have been noticed, within a minute.',
    headers: { 'Retry-After': '60' },
  })

const upgradeRequired = (): Problem =>
  new Problem({
    status: 426,
    type: 'urn:reflex:problem:upgrade-required',
    title: 'Upgrade required',
    detail: 'This is a WebSocket: connect with a WebSocket client. The same as server-sent events is at /stream.',
    headers: { Upgrade: 'websocket' },
  })
