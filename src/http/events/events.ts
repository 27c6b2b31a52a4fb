import type { Event } from '../../core/event.ts'
import type { Computing } from '../../base/computing.ts'
import type { EventReceipt, EventRecord } from '../../contract/event-record.ts'
import { NDJSON } from '../../contract/operation.ts'
import { find, list, publish, replay } from '../../contract/operations/events.ts'
import { coversScope } from '../../contract/principal.ts'
import type { Problem } from '../../contract/problem.ts'
import { enqueue } from '../../events/queue.ts'
import { findEvent, listEvents, replayEvents } from '../../store/events.ts'
import { resource, serve } from '../describe/operation.ts'
import { eventRules, readEvents } from '../body/body.ts'
import { enterComputing } from '../auth/computing.ts'
import { demandCoverage, isKeyEnded } from '../auth/middleware.ts'
import { notFound, unavailable } from '../problems/refusals.ts'
import { recordIn } from '../scopes/record.ts'
import { redactedNow } from './redacted.ts'
import { storeOf } from '../../store/store.ts'

export const eventRoutes = resource().openapiRoutes([
  serve(publish, async (c) => {
    const events = await readEvents(c.req.raw, eventRules(c), c)
    demandCoverage(c.var.principal, events)
    const { known, unsure } = await enqueue(c.env, c.executionCtx, events, Date.now())
    if (unsure.size > 0)
      throw partlyTaken(events.map((event) => ({ ...receiptOf(event, known), ...(unsure.has(event) && { status: 'unknown' }) })))
    const sent = events.map((event) => receiptOf(event, known))
    return { accepted: sent.filter(({ status }) => status === 'queued').length, events: sent }
  }),
  serve(list, async (c, { query: { type, ...query } }) => {
    const types = type === undefined ? undefined : [type]
    const page = await listEvents(storeOf(c.env), { ...query, types, patterns: c.var.principal.scopes, archived: true })
    return { ...page, items: await redactedNow(c.env)(page.items) }
  }),
  // Before `/v1/events/{id}`, which would take it for an id.
  serve(replay, async (c, { query: { types, scope, start: since, end: until } }) => {
    if (scope !== undefined) demandCoverage(c.var.principal, [{ scope }])
    const which = { since, until, scope, types: types?.split(',').map((type) => type.trim()) }
    const computing = await enterComputing(c.var.principal)
    const filter = { ...which, patterns: c.var.principal.scopes, rest: (events: number) => computing.rest(events) }
    const isEnded = () => isKeyEnded(c.env, c.var.principal)
    return ndjson(replayEvents(storeOf(c.env), filter), { shown: redactedNow(c.env), computing, isEnded })
  }),
  serve(find, async (c, { params: { id }, query: { scope } }) => {
    const covered = scope !== undefined && coversScope(c.var.principal, scope)
    const elsewhere = async () => (covered ? loggedOf(await recordIn(c.env, scope, id)) : null)
    const found = await findEvent(storeOf(c.env), id, { scope, elsewhere, patterns: c.var.principal.scopes })
    if (!found)
      throw notFound(
        `The event ${id} was not found in the scopes of this key. Events appear here about a second after their scope has them; ` +
          'those that retention has deleted here are found with `?scope=`, and those in the archive of packs by an id that has their time ' +
          '(UUID version 7), or by a list over their day.',
      )
    const [shown = found] = await redactedNow(c.env)([found])
    return shown
  }),
])

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

/** Characters of a line that are made in about the time of a short one. */
const STEP_CHARACTERS = 1000

/** `isEnded`: the key is no longer valid. A slow reader takes hours for its answer. */
type Streaming = { shown: ReturnType<typeof redactedNow>; computing: Computing; isEnded: () => Promise<boolean> }

/** Streams values as lines of JSON, at the reader's pace. */
const ndjson = (values: AsyncGenerator<Event>, streaming: Streaming): Response =>
  new Response(streamFrom(linesOf(values, streaming)), { headers: { 'Content-Type': NDJSON } })

/** Workers' types lack `ReadableStream.from`. */
const streamFrom = (chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> =>
  (ReadableStream as unknown as { from: (chunks: AsyncIterable<Uint8Array>) => ReadableStream<Uint8Array> }).from(chunks)

/** Leaves the place at the end, also where the reader has gone. */
async function* linesOf(values: AsyncGenerator<Event>, { shown, computing, isEnded }: Streaming): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let text = ''
  try {
    for await (const value of values) {
      const [event = value] = await shown([value])
      const line = `${JSON.stringify(event)}\n`
      // Thousands of events may be in memory, and come without a wait for D1.
      await computing.rest(1 + Math.floor(line.length / STEP_CHARACTERS))
      text += line
      if (text.length < CHUNK_CHARACTERS) continue
      // The answer breaks off: without an error it would seem to be whole.
      if (await isEnded()) throw new Error('the key of this answer was deleted or has expired')
      yield encoder.encode(text)
      text = ''
    }
    yield encoder.encode(text)
  } finally {
    computing.leave()
  }
}
