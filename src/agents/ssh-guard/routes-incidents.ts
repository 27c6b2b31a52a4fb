import { createRoute, z } from '@hono/zod-openapi'
import { withIso } from '../../base/time.ts'
import { coversScope } from '../../contract/principal.ts'
import { scopeName } from '../../core/event.ts'
import { findIncident, incidentStates, listIncidents, type Incident } from './incidents.ts'
import { guard, json, jsonRequest, problems, resource } from '../../http/describe/describe.ts'
import { byAge, listed, paged } from '../../http/describe/paging.ts'
import { operatorCall } from './operator-call.ts'
import { notFound } from '../../http/problems/refusals.ts'

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

const tags = ['SSH guard']

const list = createRoute({
  method: 'get',
  path: '/v1/incidents',
  operationId: 'listIncidents',
  tags,
  summary: 'List incidents, newest first',
  description: 'Tickets that skills opened, in the scopes that the key covers. Closed tickets are deleted after 30 days.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: byAge({ scope: scopeName.optional(), state: z.enum(incidentStates).optional() }),
  },
  responses: { 200: json(paged(incident), 'A page.'), ...problems(400) },
})

const close = createRoute({
  method: 'post',
  path: '/v1/incidents/{id}/close',
  operationId: 'closeIncident',
  tags,
  summary: 'Close an incident',
  description:
    'Calls the tool that a plan would call: the ticket system is notified, and the scope’s log records the caller. Closing a closed incident changes nothing. 503: the ticket system could not be notified; the incident stays open, and the request can be retried.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    params: z.object({ id: z.string().min(1).max(64) }),
    body: jsonRequest(z.strictObject({ reason: z.string().trim().min(1).max(500) }), { reason: 'the attackers are blocked' }),
  },
  responses: { 200: json(incident, 'As it is now.'), ...problems(400, 404, 409, 413, 415, 503) },
})

export const incidentRoutes = resource()
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    const found = await listIncidents(c.env.DB, { ...query, patterns: c.var.principal.scopes, before })
    return c.json(listed(found, { present, cursor: ({ opened_at, id }) => ({ at: opened_at, id }) }), 200)
  })
  .openapi(close, async (c) => {
    const { id } = c.req.valid('param')
    const { reason } = c.req.valid('json')
    const { principal } = c.var
    const found = await findIncident(c.env.DB, id)
    if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no incident ${id} in the scopes of this key.`)
    if (found.closed_at !== null) return c.json(present(found), 200)
    const call = { tool: 'close_ticket', input: { ticket: id, reason }, key: `close:${id}`, what: `Incident ${id}`, done: 'closed' }
    await operatorCall(c, found.scope, call)
    return c.json(present((await findIncident(c.env.DB, id)) ?? found), 200)
  })

const present = (incident: Incident) => ({
  ...withIso(incident, ['opened_at', 'closed_at']),
  state: incident.closed_at === null ? ('open' as const) : ('closed' as const),
})
