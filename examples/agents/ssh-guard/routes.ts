import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { type Block, findBlock, listBlocks } from './blocks.ts'
import { type Incident, findIncident, incidentStates, listIncidents } from './incidents.ts'
import { withIso } from '../../../src/base/time.ts'
import { coversScope } from '../../../src/contract/principal.ts'
import type { OperatorCall } from '../../../src/contract/scope-api.ts'
import { scopeName } from '../../../src/core/event.ts'
import { traceContextOf } from '../../../src/events/traceparent.ts'
import type { AuthEnv } from '../../../src/http/auth/middleware.ts'
import { operations } from '../../../src/contract/operation.ts'
import { idPath } from '../../../src/contract/operations/shared.ts'
import { resource, serve } from '../../../src/http/describe/operation.ts'
import { byAge, paged } from '../../../src/contract/paging.ts'
import { listed } from '../../../src/http/describe/paging.ts'
import { conflict, notFound, unavailable } from '../../../src/http/problems/refusals.ts'
import { storeOf } from '../../../src/store/store.ts'

/** Calls a tool of a scope's agent for an operator. `what` and `done` word the error. */
async function operatorCall(
  { env, req, var: { principal } }: Pick<Context<AuthEnv>, 'env' | 'req' | 'var'>,
  scope: string,
  { what, done, ...call }: OperatorCall & { what: string; done: string },
): Promise<void> {
  const called = await env.SCOPE.getByName(scope).callTool(
    { ...call, trace: traceContextOf(req.header('traceparent'), req.header('tracestate')) },
    principal.name,
  )
  if (called.ok) return
  if (called.reason === 'no_tool') throw conflict('no-such-tool', `${what} cannot be ${done}: ${called.detail}.`)
  throw unavailable(`${what} could not be ${done}: ${called.detail}. Try again.`)
}

const operation = operations({ tag: 'SSH guard', roles: ['viewer'] })
const block = z
  .object({
    id: z.string(),
    scope: z.string(),
    address: z.string().meta({ description: 'An address, or a network such as 203.0.113.0/24.' }),
    reason: z.string(),
    blocked_at: z.iso.datetime(),
  })
  .openapi('Block')

const blockList = operation('get /v1/blocks', 'listBlocks', 'List blocked addresses and networks, newest first', {
  description: 'Active blocks in the scopes that the key covers. A lifted block is in the log of its scope.',
  query: byAge({ scope: scopeName.optional() }),
  answers: { 200: [paged(block), 'A page.'] },
})

const lift = operation('delete /v1/blocks/{id}', 'liftBlock', 'Lift a block', {
  description:
    'Calls the tool that the scope’s agent would call: the firewall is notified, the scope’s log records it, and the reflex that blocked the address is overruled. A new attack can be blocked again. 503: the firewall could not be notified; the block is unchanged, and the request can be retried.',
  roles: ['operator'],
  params: idPath,
  answers: { 204: [null, 'Lifted.'] },
  problems: [404, 409, 503],
})

const blockRoutes = resource().openapiRoutes([
  serve(blockList, async (c, { query: { cursor: before, ...query } }) => {
    const found = await listBlocks(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before })
    return listed(found, { present: presentBlock, cursor: ({ blocked_at, id }) => ({ at: blocked_at, id }) })
  }),
  serve(lift, async (c, { params: { id } }) => {
    const { principal } = c.var
    const found = await findBlock(storeOf(c.env), id)
    if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no block ${id} in the scopes of this key.`)
    const what = { what: `The block of ${found.address}`, done: 'lifted' }
    await operatorCall(c, found.scope, { ...unblocking(found.address), key: `lift:${id}`, ...what })
    return null
  }),
])

const unblocking = (address: string): { tool: string; input: object } =>
  address.includes('/') ? { tool: 'unblock_network', input: { network: address } } : { tool: 'unblock', input: { address } }

const presentBlock = (block: Block) => withIso(block, ['blocked_at'])

const incident = z
  .object({
    id: z.string(),
    scope: z.string(),
    state: z.enum(incidentStates),
    title: z.string(),
    details: z.string(),
    evidence: z.array(z.string()).meta({ description: 'Log lines. They contain text that strangers typed.' }),
    opened_at: z.iso.datetime(),
    closed_at: z.iso.datetime().nullable(),
  })
  .openapi('Incident')

const incidentList = operation('get /v1/incidents', 'listIncidents', 'List incidents, newest first', {
  description: 'Tickets that skills opened, in the scopes that the key covers. Closed tickets are deleted after 30 days.',
  query: byAge({ scope: scopeName.optional(), state: z.enum(incidentStates).optional() }),
  answers: { 200: [paged(incident), 'A page.'] },
})

const close = operation('post /v1/incidents/{id}/close', 'closeIncident', 'Close an incident', {
  description:
    'Calls the tool that a plan would call: the ticket system is notified, and the scope’s log records the caller. Closing a closed incident changes nothing. 503: the ticket system could not be notified; the incident stays open, and the request can be retried.',
  roles: ['operator'],
  params: z.object({ id: z.string().min(1).max(64) }),
  body: z.strictObject({ reason: z.string().trim().min(1).max(500) }),
  example: { reason: 'the attackers are blocked' },
  answers: { 200: [incident, 'As it is now.'] },
  problems: [404, 409, 503],
})

const incidentRoutes = resource().openapiRoutes([
  serve(incidentList, async (c, { query: { cursor: before, ...query } }) => {
    const found = await listIncidents(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before })
    return listed(found, { present: presentIncident, cursor: ({ opened_at, id }) => ({ at: opened_at, id }) })
  }),
  serve(close, async (c, { params: { id }, body: { reason } }) => {
    const { principal } = c.var
    const found = await findIncident(storeOf(c.env), id)
    if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no incident ${id} in the scopes of this key.`)
    if (found.closed_at !== null) return presentIncident(found)
    const call = { tool: 'close_ticket', input: { ticket: id, reason }, key: `close:${id}`, what: `Incident ${id}`, done: 'closed' }
    await operatorCall(c, found.scope, call)
    return presentIncident((await findIncident(storeOf(c.env), id)) ?? found)
  }),
])

const presentIncident = (incident: Incident) => ({
  ...withIso(incident, ['opened_at', 'closed_at']),
  state: incident.closed_at === null ? ('open' as const) : ('closed' as const),
})

export const sshGuardRoutes = resource().route('/', incidentRoutes).route('/', blockRoutes)
