import { createRoute, z } from '@hono/zod-openapi'
import { scopeName } from '../core/event.ts'
import { incidentStates, listIncidents, type Incident } from '../store/incidents.ts'
import { ageCursor, beforeOf, pageByAge } from './age-cursor.ts'
import { guard, json, paged, pageLimit, problems, resource } from './describe.ts'

const incident = z
  .object({
    id: z.string(),
    scope: z.string(),
    state: z.enum(incidentStates),
    title: z.string(),
    details: z.string(),
    evidence: z.array(z.string()).meta({ description: 'Lines of the log. They hold what strangers typed.' }),
    opened_at: z.iso.datetime(),
    closed_at: z.iso.datetime().nullable(),
  })
  .openapi('Incident')

const list = createRoute({
  method: 'get',
  path: '/v1/incidents',
  tags: ['SSH guard'],
  summary: 'List incidents, newest first',
  description: 'The tickets that skills opened, in the scopes that the key covers. A closed one is forgotten after 30 days.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({ scope: scopeName.optional(), state: z.enum(incidentStates).optional(), limit: pageLimit(1000), cursor: ageCursor }),
  },
  responses: { 200: json(paged(incident), 'A page.'), ...problems(400) },
})

export const incidentRoutes = resource().openapi(list, async (c) => {
  const { limit, cursor, ...query } = c.req.valid('query')
  const { scopes: patterns } = c.var.principal
  const found = await listIncidents(c.env.DB, { ...query, patterns, before: beforeOf(cursor), limit: limit + 1 })
  const { page, next_cursor } = pageByAge(found, limit, ({ opened_at, id }) => ({ at: opened_at, id }))
  return c.json({ items: page.map(present), next_cursor }, 200)
})

const present = ({ opened_at, closed_at, ...incident }: Incident) => ({
  ...incident,
  state: closed_at === null ? ('open' as const) : ('closed' as const),
  opened_at: iso(opened_at),
  closed_at: closed_at === null ? null : iso(closed_at),
})

const iso = (ms: number): string => new Date(ms).toISOString()
