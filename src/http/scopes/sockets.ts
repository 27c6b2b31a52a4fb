import { isKeyEnded } from '../auth/middleware.ts'
import { issueTicket, principalOf, ticketSecretOf, verifyTicket } from '../auth/ticket.ts'
import { deciderOf, hasRole, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { randomHex } from '../../core/event.ts'
import { createTicket, socket, stream } from '../../contract/operations/live.ts'
import type { Connect } from '../../contract/scope-api.ts'
import { limits } from '../../base/limits.ts'
import type { Problem } from '../../contract/problem.ts'
import { resource, serve } from '../describe/operation.ts'
import { conflict, refusal, tooMany, unavailable } from '../problems/refusals.ts'

export const socketRoutes = resource().openapiRoutes([
  serve(socket, (c, { query: { after = null, connection_id = c.var.principal.name, frames } }) => {
    if (c.req.header('Upgrade')?.toLowerCase() !== 'websocket') throw upgradeRequired()
    const { scope, principal } = c.var
    const connecting = {
      connection_id,
      key_id: principal.key_id,
      source: principal.name,
      may_send: hasRole(principal, 'publisher'),
      decides_as: deciderOf(principal),
      after,
      ...(frames === 'units' && { units: true as const }),
    }
    return connect(c.env, scope, connecting, { Upgrade: 'websocket' })
  }),
  serve(stream, (c, { query }) => {
    const { scope, principal } = c.var
    const after = lastEventId(c.req.header('Last-Event-ID')) ?? query.after ?? null
    const { key_id, name } = principal
    return connect(c.env, scope, { connection_id: name, key_id, source: name, may_send: false, decides_as: null, after })
  }),
  serve(createTicket, async (c) => {
    const { scope, principal } = c.var
    const secret = ticketSecretOf(c.env)
    if (secret === null) throw conflict('tickets-not-configured', NO_TICKETS)
    const { ticket, expires_at } = await issueTicket(secret, { scope, principal, nonce: randomHex(16), now: Date.now() })
    c.header('Cache-Control', 'no-store')
    return { ticket, expires_at: new Date(expires_at).toISOString() }
  }),
])

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
  if (!claims || (await isKeyEnded(env, claims))) return null
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
