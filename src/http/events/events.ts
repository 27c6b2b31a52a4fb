import { z } from '@hono/zod-openapi'
import { scopeName, type Event } from '../../core/event.ts'
import { eventStatuses, type EventReceipt, type EventRecord, loggedEvent, partlyQueued, receipts } from '../../contract/event-record.ts'
import { coversScope } from '../../contract/principal.ts'
import type { Problem } from '../../contract/problem.ts'
import { enqueue } from '../../events/enqueue.ts'
import { findEvent, listEvents, replayEvents } from '../../store/events.ts'
import { NDJSON, guard, instant, json, problemJson, problems, resource, routes } from '../describe/describe.ts'
import { paged, pageLimit } from '../../contract/paging.ts'
import { partialQuery } from '../describe/paging.ts'
import { eventBody } from '../body/event-body.ts'
import { eventRules, readEvents } from '../body/parse-events.ts'
import { demandCoverage, notFound, unavailable } from '../problems/refusals.ts'
import { recordIn } from '../scopes/record.ts'
import { storeOf } from '../../store/store.ts'
import { withoutSecretFields } from '../../traces/keyed-hash.ts'

const route = routes('Events')

const publish = route('post /v1/events', 'publishEvents', 'Send events to any scopes through the queue', {
  description:
    'Responds once the events are durable; their scopes receive them within milliseconds. Set your own ids to make retries idempotent: an event with a known id is a duplicate ' +
    'and changes nothing. If the queue accepts only some of the events (503), `receipts` lists which ones to send again, and under which ids. A `traceparent` header sets the trace of the events.',
  ...guard({ roles: ['publisher'] }),
  request: { body: eventBody() },
  responses: {
    202: json(receipts, 'Accepted.'),
    ...problems(400, 413, 415),
    503: problemJson(partlyQueued, 'The queue did not accept all events, or is unavailable.'),
  },
})

const list = route('get /v1/events', 'listEvents', 'List events, newest first', {
  description:
    'By the time at which they were accepted, whatever `timestamp` they have. The event log of all scopes that the key covers, about a second behind the scopes. A page holds at most 4 MB of events, regardless of `limit`.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      scope: scopeName.optional(),
      type: z.string().min(1).max(128).optional(),
      status: z.enum(eventStatuses).optional(),
      partial: partialQuery,
      since: instant.optional().describe('Events accepted at or after this time.'),
      until: instant.optional().describe('Events accepted before this time.'),
      limit: pageLimit(1000),
      cursor: z
        .string()
        .regex(/^\d{1,19}$/, 'take the next_cursor of the page before')
        .optional(),
    }),
  },
  responses: { 200: json(paged(loggedEvent), 'A page.'), ...problems(400) },
})

const replay = route('get /v1/events/replay', 'replayEvents', 'Replay history as NDJSON, oldest first', {
  description: 'Reads the retained event log by the `timestamp` of the events. It changes nothing and does not contact any scope.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      start: instant.default('1970-01-01T00:00:00.000Z').describe('Inclusive.'),
      end: instant.optional().describe('Exclusive.'),
      types: z.string().min(1).optional().meta({ description: 'Comma-separated types.', example: 'ws.message,timer.tick' }),
      scope: scopeName.optional(),
    }),
  },
  responses: {
    200: { description: 'Events, one per line.', content: { [NDJSON]: { schema: z.string() } } },
    ...problems(400),
  },
})

const find = route('get /v1/events/{id}', 'getEvent', 'Get one event', {
  description:
    'Ids are unique per scope; without `scope` the newest event with the id is returned. ' +
    'With `scope`, an event that retention has deleted is read from its scope or the archive.',
  ...guard({ roles: ['viewer'] }),
  request: { params: z.object({ id: z.string().min(1).max(128) }), query: z.object({ scope: scopeName.optional() }) },
  responses: { 200: json(loggedEvent, 'The event.'), ...problems(400, 404, 503) },
})

export const eventRoutes = resource()
  .openapi(publish, async (c) => {
    const events = await readEvents(c.req.raw, eventRules(c), c)
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
    const page = await listEvents(storeOf(c.env), { ...query, types, patterns: c.var.principal.scopes })
    return c.json(withoutSecretFields(c.env, page), 200)
  })
  // Before `/v1/events/{id}`, which would take it for an id.
  .openapi(replay, (c) => {
    const { types, scope, start: since, end: until } = c.req.valid('query')
    if (scope !== undefined) demandCoverage(c.var.principal, [{ scope }])
    const which = { since, until, scope, types: types?.split(',').map((type) => type.trim()) }
    return ndjson(replayEvents(storeOf(c.env), { ...which, patterns: c.var.principal.scopes }), (event) =>
      withoutSecretFields(c.env, event),
    )
  })
  .openapi(find, async (c) => {
    const { id } = c.req.valid('param')
    const { scope } = c.req.valid('query')
    const covered = scope !== undefined && coversScope(c.var.principal, scope)
    const found =
      (await findEvent(storeOf(c.env), id, { scope, patterns: c.var.principal.scopes })) ??
      (covered ? loggedOf(await recordIn(c.env, scope, id)) : null)
    if (!found)
      throw notFound(
        `The event ${id} was not found in the scopes of this key. Events appear here about a second after their scope has them; ` +
          'those that retention has deleted here are found with `?scope=`.',
      )
    return c.json(withoutSecretFields(c.env, found), 200)
  })

function loggedOf(record: EventRecord | null) {
  if (!record) return null
  const { event, status, attempts, error, outcome } = record
  const partial = outcome?.by === 'turn' && outcome.partial === true
  const { id, scope, type, source, timestamp, meta } = event
  return { id, scope, type, source, timestamp, status, attempts, error, trace_id: meta.trace_id, partial, event }
}

/** Carries all ids, also generated ones, so that resent events are duplicates. */
function partlyTaken(receipts: { status: string }[]): Problem {
  const unknown = receipts.filter(({ status }) => status === 'unknown').length
  const detail =
    `The queue may not have accepted ${unknown} of the ${receipts.length} events: those with the status unknown in receipts. Send them again under the ids ` +
    'given there, or directly to /v1/scopes/{scope}/events.'
  return unavailable(detail, { receipts })
}

/** A duplicate within the batch gets the trace of the first one, which is the one logged. */
function receiptOf(
  { id, scope, meta: { trace_id, sent_id } }: Event,
  known: Map<string, string>,
): EventReceipt & { status: 'queued' | 'duplicate' } {
  const key = `${scope} ${id}`
  const first = known.get(key)
  if (first === undefined) known.set(key, trace_id)
  const sent = sent_id === undefined ? {} : { sent_id }
  return { id, ...sent, scope, trace_id: first ?? trace_id, status: first === undefined ? 'queued' : 'duplicate' }
}

/** Enough for a reader, little enough to hold. */
const CHUNK_CHARACTERS = 64_000

/** Streams values as lines of JSON, at the reader's pace. */
const ndjson = (values: AsyncGenerator, shown: (value: unknown) => unknown): Response =>
  new Response(streamFrom(linesOf(values, shown)), { headers: { 'Content-Type': NDJSON } })

/** Workers' types lack `ReadableStream.from`. */
const streamFrom = (chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> =>
  (ReadableStream as unknown as { from: (chunks: AsyncIterable<Uint8Array>) => ReadableStream<Uint8Array> }).from(chunks)

async function* linesOf(values: AsyncGenerator, shown: (value: unknown) => unknown): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let text = ''
  for await (const value of values) {
    text += `${JSON.stringify(shown(value))}\n`
    if (text.length < CHUNK_CHARACTERS) continue
    yield encoder.encode(text)
    text = ''
  }
  yield encoder.encode(text)
}
