import { createRoute, z } from '@hono/zod-openapi'
import { scopeName, type Event } from '../../core/event.ts'
import { eventStatuses } from '../../contract/event-record.ts'
import type { Problem } from '../../contract/problem.ts'
import type { EventReceipt } from '../../contract/scope-api.ts'
import { enqueue } from '../../events/enqueue.ts'
import { findEvent, listEvents, replayEvents } from '../../store/events.ts'
import { guard, instant, json, paged, pageLimit, problemJson, problems, resource } from '../describe/describe.ts'
import { eventBody } from '../body/event-body.ts'
import { eventRules } from '../body/event-rules.ts'
import { ndjson } from './ndjson.ts'
import { readEvents } from '../body/parse-events.ts'
import { demandCoverage, notFound, unavailable } from '../problems/refusals.ts'
import { loggedEvent, partlyQueued, receipts } from '../describe/schemas.ts'

const tags = ['Events']
/** As any string: by its name zod-openapi's types would take it for JSON. */
const NDJSON: string = 'application/x-ndjson'

const publish = createRoute({
  method: 'post',
  path: '/v1/events',
  operationId: 'publishEvents',
  tags,
  summary: 'Send events to any scopes, by the queue',
  description:
    'Answered once the events are durable; their scopes get them within milliseconds. Send ids of your own: an event sent again under its id is a duplicate, ' +
    'and changes nothing. Where the queue takes a part of them only (503), `receipts` says of each whether to send it again, and under which id. A `traceparent` header gives the events their trace.',
  ...guard({ roles: ['publisher'] }),
  request: { body: eventBody() },
  responses: {
    202: json(receipts, 'Taken.'),
    ...problems(400, 413, 415),
    503: problemJson(partlyQueued, 'The queue did not take all of them.'),
  },
})

const list = createRoute({
  method: 'get',
  path: '/v1/events',
  operationId: 'listEvents',
  tags,
  summary: 'List events, newest first',
  description:
    'The log of events over all scopes that the key covers. It follows the scopes within about a second. A page holds at most 4 MB of events, whatever its `limit`.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      scope: scopeName.optional(),
      type: z.string().min(1).max(128).optional(),
      status: z.enum(eventStatuses).optional(),
      since: instant.optional().meta({ description: 'Events of this time or later.' }),
      until: instant.optional().meta({ description: 'Events before this time.' }),
      limit: pageLimit(1000),
      cursor: z
        .string()
        .regex(/^\d{1,19}$/, 'take the next_cursor of the page before')
        .optional(),
    }),
  },
  responses: { 200: json(paged(loggedEvent), 'A page.'), ...problems(400) },
})

const replay = createRoute({
  method: 'get',
  path: '/v1/events/replay',
  operationId: 'replayEvents',
  tags,
  summary: 'Replay history as NDJSON, oldest first',
  description: 'Reads what is kept in the log of events, by their timestamps. It changes nothing and no scope is asked.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      start: instant.default('1970-01-01T00:00:00.000Z').meta({ description: 'Inclusive.' }),
      end: instant.optional().meta({ description: 'Exclusive.' }),
      types: z.string().min(1).optional().meta({ description: 'Types, separated by commas.', example: 'ws.message,timer.tick' }),
      scope: scopeName.optional(),
    }),
  },
  responses: {
    200: { description: 'Events, one a line.', content: { [NDJSON]: { schema: z.string() } } },
    ...problems(400),
  },
})

const find = createRoute({
  method: 'get',
  path: '/v1/events/{id}',
  operationId: 'getEvent',
  tags,
  summary: 'Get one event',
  description: 'Ids are unique in a scope only; without `scope` it is the newest event of that id.',
  ...guard({ roles: ['viewer'] }),
  request: { params: z.object({ id: z.string().min(1).max(128) }), query: z.object({ scope: scopeName.optional() }) },
  responses: { 200: json(loggedEvent, 'The event.'), ...problems(400, 404) },
})

export const eventRoutes = resource()
  .openapi(publish, async (c) => {
    const events = await readEvents(c.req.raw, eventRules(c))
    demandCoverage(c.var.principal, events)
    const { known, unsure } = await enqueue(c.env, c.executionCtx, events, Date.now())
    if (unsure.size > 0)
      throw partlyTaken(events.map((event) => ({ ...receiptOf(event, known), ...(unsure.has(event) && { status: 'unknown' }) })))
    const sent = events.map((event) => receiptOf(event, known))
    return c.json({ accepted: sent.filter(({ status }) => status === 'queued').length, events: sent }, 202)
  })
  .openapi(list, async (c) => {
    const { type, ...query } = c.req.valid('query')
    const types = type === undefined ? undefined : [type]
    return c.json(await listEvents(c.env.DB, { ...query, types, patterns: c.var.principal.scopes }), 200)
  })
  // Before `/v1/events/{id}`, which would take it for an id.
  .openapi(replay, (c) => {
    const { types, scope, start: since, end: until } = c.req.valid('query')
    if (scope !== undefined) demandCoverage(c.var.principal, [{ scope }])
    const which = { since, until, scope, types: types?.split(',').map((type) => type.trim()) }
    return ndjson(replayEvents(c.env.DB, { ...which, patterns: c.var.principal.scopes }))
  })
  .openapi(find, async (c) => {
    const { id } = c.req.valid('param')
    const { scope } = c.req.valid('query')
    const found = await findEvent(c.env.DB, id, { scope, patterns: c.var.principal.scopes })
    if (!found) throw notFound(`There is no event ${id} in the scopes of this key. The scope itself knows of it a second earlier.`)
    return c.json(found, 200)
  })

/** The ids stand in it, also those that were made here: whatever became of an event, it is not doubled if it is sent again under its own. */
function partlyTaken(receipts: { status: string }[]): Problem {
  const unknown = receipts.filter(({ status }) => status === 'unknown').length
  const detail =
    `The queue may not have taken ${unknown} of the ${receipts.length} events: those whose status in receipts is unknown. Send them again, under the ids that ` +
    'stand there; or directly, to /v1/scopes/{scope}/events.'
  return unavailable(detail, { receipts })
}

/** The second of two equal ones in a batch is a duplicate too. Its trace is that of the first: the log has no other. */
function receiptOf({ id, scope, meta }: Event, known: Map<string, string>): EventReceipt & { status: 'queued' | 'duplicate' } {
  const key = `${scope} ${id}`
  const first = known.get(key)
  if (first === undefined) known.set(key, meta.trace_id)
  return { id, scope, trace_id: first ?? meta.trace_id, status: first === undefined ? 'queued' : 'duplicate' }
}
