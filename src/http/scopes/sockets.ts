import { z } from '@hono/zod-openapi'
import { issueTicket as signTicket, principalOf, ticketSecretOf, verifyTicket } from '../auth/ticket.ts'
import { deciderOf, hasRole, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { randomHex } from '../../core/event.ts'
import { keyDeleted, tooFarBehind, type Connect } from '../../contract/scope-api.ts'
import { limits } from '../../base/limits.ts'
import { problem, type Problem } from '../../contract/problem.ts'
import { guard, json, problemJson, problems, resource, routes, scopePath } from '../describe/describe.ts'
import { conflict, refusal, tooMany, unavailable } from '../problems/refusals.ts'

const route = routes('Live')
const seq = z.coerce.number<string>().int().min(0).optional()
const after = seq.describe('The last `seq` seen: newer log entries are sent first. Without it, only new entries are sent.')
const ticket = z.string().optional().describe('A one-time ticket, in place of a key.')

const socket = route('get /v1/scopes/{scope}/ws', 'openSocket', 'Open a WebSocket', {
  description:
    'JSON in both directions. **In** (role publisher): an event, or `{"content": "…"}`, which is a `ws.message` of this connection; with the role operator also ' +
    '`{"type": "approve" or "reject", "approval_id", "reason"?}`. **Out**: `{"type": "ack", "id", "status"}` once an event is durable or a decision is recorded; `{"type": "error", "errors"}` for invalid input, after which the socket stays open; `{"type": "log", "entry"}` for ' +
    'each log entry; `{"type": "delta", "turn_id", "content"}` for parts of a response in progress, with `"from": 0` for the whole response so far, which a socket gets that opens meanwhile, and with `event_id` for the whole reply of a reflex, ahead of its entry `reply-sent`. `ping` is answered with `pong`. Clients that cannot set headers, such as browsers, request a ticket ' +
    'and pass it as `?ticket=`. The first frame is `{"type": "open", "seq"}`: log entries after this `seq` follow. To resume without a gap, pass `?after=SEQ` with the last `seq` of an ' +
    `entry, or of \`open\` if no entry has arrived. A socket whose key was deleted is closed with ${keyDeleted.code} (${keyDeleted.reason}) ` +
    'within a minute of use; reconnecting with that key is rejected. After every 64 kB the scope sends `{"type": "mark", "sent"}`: **return it unchanged** once ' +
    `the preceding frames are processed. The scope sends at most ${limits.unread_bytes / 1024} kB beyond the last returned mark, and continues from the log when the next one is returned. ` +
    `If no mark is returned for 30 s, the socket is closed with ${tooFarBehind.code}; \`?after=SEQ\` resumes without a gap. A client that never returns a mark is sent 4 MB a second, and closed with ${tooFarBehind.code} after ${limits.unconfirmed_bytes / 1024 / 1024} MB. A socket accepts ${limits.socket_messages_per_second} messages per second; ` +
    `further messages are answered with an error. A key may have at most ${limits.connections_per_key} open sockets and streams per scope (429).`,
  ...guard({ roles: ['publisher', 'viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      after,
      ticket,
      connection_id: z.string().min(1).max(128).optional().describe("The name of this connection; defaults to the key's name."),
    }),
  },
  responses: {
    101: { description: 'The socket is open.' },
    426: problemJson(problem, 'Not a WebSocket upgrade request.'),
    ...problems(400, 503),
  },
})

const stream = route('get /v1/scopes/{scope}/stream', 'streamLog', 'Follow the log as server-sent events', {
  description:
    'Each event is named `log`; its `id` is the `seq` and its data the entry. A `Last-Event-ID` header resumes the stream; an EventSource sends it automatically, even before the ' +
    'first entry, because the stream starts with the `id` of the position before it. A stream ends within about a minute after its key was deleted, or if nothing was read from it for a minute.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: { params: scopePath, query: z.object({ after, ticket }) },
  responses: {
    200: { description: 'The stream.', content: { 'text/event-stream': { schema: z.string() } } },
    ...problems(400),
  },
})

const issueTicket = route('post /v1/scopes/{scope}/tickets', 'createTicket', 'Get a one-time ticket', {
  description:
    'Valid for one connection to this scope, for 60 s, with the base roles of the requesting key. If that key is deleted, the connection is closed. ' +
    'The deployment signs it with `REFLEX_TICKET_SECRET` or a key derived from `REFLEX_ADMIN_KEY`; replacing that secret invalidates unused tickets. 409: neither is set.',
  ...guard({ roles: ['viewer', 'publisher'], scoped: true }),
  request: { params: scopePath },
  responses: { 201: json(z.object({ ticket: z.string(), expires_at: z.iso.datetime() }), 'The ticket.'), ...problems(400, 409) },
})

export const socketRoutes = resource()
  .openapi(socket, async (c) => {
    if (c.req.header('Upgrade')?.toLowerCase() !== 'websocket') throw upgradeRequired()
    const { scope, principal } = c.var
    const { after = null, connection_id = principal.name } = c.req.valid('query')
    const connecting = {
      connection_id,
      key_id: principal.key_id,
      source: principal.name,
      may_send: hasRole(principal, 'publisher'),
      decides_as: deciderOf(principal),
      after,
    }
    return connect(c.env, scope, connecting, { Upgrade: 'websocket' })
  })
  .openapi(stream, async (c) => {
    const { scope, principal } = c.var
    const after = lastEventId(c.req.header('Last-Event-ID')) ?? c.req.valid('query').after ?? null
    const { key_id, name } = principal
    return connect(c.env, scope, { connection_id: name, key_id, source: name, may_send: false, decides_as: null, after })
  })
  .openapi(issueTicket, async (c) => {
    const { scope, principal } = c.var
    const secret = ticketSecretOf(c.env)
    if (secret === null) throw conflict('tickets-not-configured', NO_TICKETS)
    const { ticket, expires_at } = await signTicket(secret, { scope, principal, nonce: randomHex(16), now: Date.now() })
    c.header('Cache-Control', 'no-store')
    return c.json({ ticket, expires_at: new Date(expires_at).toISOString() }, 201)
  })

/** The object trusts the connection header, so none of the caller's headers are passed on. */
export async function connect(env: Env, scope: string, by: Connect, headers: Record<string, string> = {}): Promise<Response> {
  const opening = { ...headers, 'x-reflex-connect': ascii(JSON.stringify(by)) }
  const response = await env.SCOPE.getByName(scope).fetch('https://scope/', { headers: opening })
  if (response.status === 429) throw tooManyConnections(scope)
  if (response.status === 503)
    throw unavailable(`The scope ${scope} has reached its limit of open sockets and streams. Close some, or try again later.`)
  return response
}

/** Contacts the scope's object only for genuine tickets: a forged one starts no object. */
export async function redeemTicket(env: Env, scope: string, ticket: string): Promise<Principal | null> {
  const claims = await verifyTicket(ticketSecretOf(env), scope, ticket, Date.now())
  if (!claims) return null
  const used = await env.SCOPE.getByName(scope).useTicket(claims.nonce, claims.expires_at)
  if (used.ok) return principalOf(claims)
  if (used.reason === 'too_many') throw tooManyTickets(scope, used.detail)
  return null
}

/** Headers are limited to ASCII; JSON escapes the rest. */
const ascii = (json: string): string => json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Ignores ids we did not issue: an EventSource could not handle a rejection. */
const lastEventId = (header: string | undefined): number | undefined => (/^\d{1,15}$/.test(header ?? '') ? Number(header) : undefined)

const NO_TICKETS =
  'This deployment has no secret to sign tickets with: set REFLEX_TICKET_SECRET or REFLEX_ADMIN_KEY (`wrangler secret put REFLEX_TICKET_SECRET`).'

const RETRY_S = 60

const tooManyTickets = (scope: string, detail: string): Problem =>
  tooMany('too-many-requests', `The scope ${scope} accepts no further tickets now: ${detail}. Request a new one in a minute.`, RETRY_S)

function tooManyConnections(scope: string): Problem {
  const detail =
    `This key has reached its limit of ${limits.connections_per_key} open sockets and streams on the scope ${scope}. ` +
    'Close some, or try again in a minute, when lost connections have been detected.'
  return tooMany('too-many-connections', detail, RETRY_S)
}

const upgradeRequired = (): Problem =>
  refusal('upgrade-required', 'Connect with a WebSocket client. /stream serves the same as server-sent events.', {
    headers: { Upgrade: 'websocket' },
  })
