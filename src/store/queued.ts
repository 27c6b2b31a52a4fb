import type { Event } from '../core/event.ts'
import { jsonChunks } from '../base/json.ts'

/**
 * Ids of both event tables begin with a time in ms. They exceed a number's precision, so they are
 * text.
 */
export const BITS = 21
/** The places of a millisecond: rows begin with the first, and packed events in the middle. */
export const SLOT = 1n << BigInt(BITS)
export const PLACE_BIT = SLOT / 2n
export const seqAt = (ms: number): string => String(BigInt(Math.max(0, Math.floor(ms))) << BigInt(BITS))
/** The time of a place, in ms. */
export const msOf = (seq: bigint): number => Number(seq >> BigInt(BITS))

type Between = { rising: boolean; after: bigint; before: bigint }

/**
 * A round place for a cursor beside `edge`, on the side that a page has passed; null if the bounds
 * have none. The place of an event that the caller may not see tells when it was accepted.
 */
export function roundPlace(edge: bigint, { rising, after, before }: Between): bigint | null {
  const minute = SLOT * 60_000n
  const round = rising ? (edge / minute) * minute - 1n : (edge / minute + 1n) * minute
  return round > after && round < before ? round : null
}

/** SQL for the own time of the event with the JSON `event`, in ms. */
const happenedAt = (event: string): string => `CAST(round(unixepoch(${event}->>'timestamp', 'subsec') * 1000) AS INTEGER)`
/**
 * An own time that is nearer to the acceptance is not stored beside it: those who collect events
 * send them some seconds later.
 */
export const NEAR_MS = 10_000

/**
 * SQL that inserts rows into the log; each goes behind the events that were accepted in its
 * millisecond `filed`. Fields with a column are left out of the payload.
 */
export const insertEvents = (rows: string): string => `INSERT INTO events
    (seq, id, scope, type, status, attempts, error, accepted_at, revision, ended_at, agent, trace_id, happened_at, trace_key, log_from, kinds, skills, payload)
  SELECT coalesce((SELECT max(seq) FROM events WHERE seq >= filed << ${BITS} AND seq < (filed + 1) << ${BITS}), filed << ${BITS})
      + row_number() OVER (PARTITION BY filed ORDER BY place),
    event->>'id', event->>'scope', event->>'type', status, attempts, error, accepted_at, revision, ended_at, agent, event->>'$.meta.trace_id',
    CASE WHEN abs(${happenedAt('event')} - filed) >= ${NEAR_MS} THEN ${happenedAt('event')} END, trace_key, log_from, kinds, skills,
    json_remove(event, '$.id', '$.scope', '$.type', '$.meta.trace_id')
  FROM (${rows}) WHERE true`

/** A row of `queued`: the events of one `sendBatch`. */
type SentBatch = { id: string; events: readonly Event[] }
type UnseenBatch = SentBatch & { attempts: number }

/** The id of a new batch. Two equal ids share a row. */
export const newBatchId = (now: number): string => String(BigInt(seqAt(now)) + BigInt(Math.floor(Math.random() * 2 ** BITS)))

/**
 * Records batches for the sweep. Returns the traces of events that have a row already, by
 * `scope id`.
 */
export async function noteQueued(db: D1Database, batches: readonly SentBatch[], due_at: number): Promise<Map<string, string>> {
  const rows = jsonChunks(batches.map(({ id, events }) => JSON.stringify([id, events])))
  const asked = jsonChunks(batches.flatMap(({ events }) => events.map(({ scope, id }) => JSON.stringify([scope, id]))))
  const answers = await db.batch<{ scope: string; id: string; trace_id: string }>([
    ...asked.map((chunk) => db.prepare(KNOWN_ROWS).bind(chunk)),
    ...rows.map((chunk) => db.prepare(NOTE).bind(chunk, due_at)),
  ])
  return new Map(answers.flatMap(({ results }) => results.map(({ scope, id, trace_id }) => [`${scope} ${id}`, trace_id] as const)))
}

const KNOWN_ROWS = `SELECT scope, events.id, trace_id FROM json_each(?1) AS asked
  CROSS JOIN events ON events.id = asked.value->>1 AND scope = asked.value->>0`
type EventName = { scope: string; id: string }
export const nameOf = ({ scope, id }: EventName): string => `${scope} ${id}`

/** The events that have no row. */
export async function withoutRow<Event extends EventName>(db: D1Database, events: readonly Event[]): Promise<Event[]> {
  const chunks = jsonChunks(events.map(({ scope, id }) => JSON.stringify([scope, id])))
  if (chunks.length === 0) return []
  const rows = await db.batch<EventName>(chunks.map((chunk) => db.prepare(KNOWN_ROWS).bind(chunk)))
  const known = new Set(rows.flatMap(({ results }) => results.map(nameOf)))
  return events.filter((event) => !known.has(nameOf(event)))
}

const NOTE = `INSERT INTO queued (id, due_at, events) SELECT CAST(value->>0 AS INTEGER), ?2, value->1 FROM json_each(?1) WHERE true
  ON CONFLICT (id) DO UPDATE SET events = rtrim(events, ']') || ',' || ltrim(excluded.events, '[')`

/** SQL that is true if a row has the event with the JSON `event`. */
const isKnown = (event: string): string =>
  `EXISTS (SELECT 1 FROM events WHERE events.id = ${event}->>'id' AND events.scope = ${event}->>'scope')`

/** Maximum number of the newest queued rows to read for one response. */
const LOOKED_AT_ROWS = 2000
const LOOKED_AT_BYTES = 16_000_000

/**
 * SQL for queued events that no row has. Only batches that contain `text` are read, and none whose
 * events are all before the place `after`.
 */
export const inFlight = ({
  text,
  after,
}: {
  text?: string
  after?: string
}): string => `SELECT (filed << ${BITS}) + ${2 ** (BITS - 1)} + place AS key, scope, type,
    'queued' AS status, octet_length(queued) AS bytes, queued
  FROM (SELECT found.key AS place, found.value AS queued, found.value->>'scope' AS scope, found.value->>'type' AS type,
      batch.id >> ${BITS} AS filed
    FROM queued AS batch CROSS JOIN json_each(batch.events) AS found
    WHERE batch.id IN (SELECT id FROM (SELECT id, sum(octet_length(events)) OVER (ORDER BY id DESC) - octet_length(events) AS before
        FROM (SELECT id, events FROM queued ${after === undefined ? '' : `WHERE id >= (${after} >> ${BITS}) << ${BITS}`} ORDER BY id DESC LIMIT ${LOOKED_AT_ROWS}))
      WHERE before < ${LOOKED_AT_BYTES})
      ${text === undefined ? '' : `AND instr(batch.events, ${text}) > 0`})
  WHERE NOT ${isKnown('queued')}`

/** Events that the log has in packs are among those that no row has. */
type Looked = { id: string; due_at: number; attempts: number; events: number; unseen: { scope: string; id: string }[] }

/** The next batches after the id `after`, oldest first, with the events that no row has. */
export async function batchesAfter(db: D1Database, after: string, limit: number): Promise<Looked[]> {
  const { results } = await db
    .prepare(
      `SELECT CAST(batch.id AS TEXT) AS id, due_at, attempts, count(*) AS events,
          json_group_array(json_object('scope', found.value->>'scope', 'id', found.value->>'id')) FILTER (WHERE NOT ${isKnown('found.value')}) AS unseen
        FROM queued AS batch CROSS JOIN json_each(batch.events) AS found
        WHERE batch.id IN (SELECT id FROM queued WHERE id > CAST(?1 AS INTEGER) ORDER BY id LIMIT ?2)
        GROUP BY batch.id ORDER BY batch.id`,
    )
    .bind(after, limit)
    .all<Omit<Looked, 'unseen'> & { unseen: string | null }>()
  return results.map((row) => ({ ...row, unseen: JSON.parse(row.unseen ?? '[]') as Looked['unseen'] }))
}

export const anyQueued = async (db: D1Database): Promise<boolean> => (await db.prepare('SELECT 1 FROM queued LIMIT 1').first()) !== null

const LISTED = '(SELECT CAST(value AS INTEGER) FROM json_each(?1))'

/** The batches of these that still exist, each with its events that no row has. */
export async function unseenBatches(db: D1Database, ids: readonly string[]): Promise<UnseenBatch[]> {
  const { results } = await db
    .prepare(
      `SELECT CAST(batch.id AS TEXT) AS id, attempts, '[' || group_concat(found.value) || ']' AS events
        FROM queued AS batch CROSS JOIN json_each(batch.events) AS found WHERE batch.id IN ${LISTED} AND NOT ${isKnown('found.value')}
        GROUP BY batch.id ORDER BY batch.id`,
    )
    .bind(JSON.stringify(ids))
    .all<{ id: string; attempts: number; events: string }>()
  return results.map((row) => ({ ...row, events: JSON.parse(row.events) as Event[] }))
}

export async function dropBatches(db: D1Database, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await db.prepare(`DELETE FROM queued WHERE id IN ${LISTED}`).bind(JSON.stringify(ids)).run()
}

/** Statements that drop the notes of batches which have no events but the given ones. */
export function dropWhole(db: D1Database, ids: readonly string[], events: readonly EventName[]): D1PreparedStatement[] {
  if (ids.length === 0) return []
  const [names = '[]', ...more] = jsonChunks(events.map((event) => JSON.stringify(nameOf(event))))
  // The sweep also drops what is too much for one statement.
  return more.length > 0 ? [] : [db.prepare(DROP_WHOLE).bind(JSON.stringify(ids), names)]
}

const DROP_WHOLE = `DELETE FROM queued WHERE id IN ${LISTED} AND NOT EXISTS (SELECT 1 FROM json_each(events) AS sent
  WHERE (sent.value->>'scope') || ' ' || (sent.value->>'id') NOT IN (SELECT value FROM json_each(?2)))`

/** Keeps the sweep off these batches until `due_at`, because the queue will redeliver them. */
export async function postponeBatches(db: D1Database, ids: readonly string[], due_at: number): Promise<void> {
  if (ids.length === 0) return
  await db.prepare(`UPDATE queued SET due_at = max(due_at, ?2) WHERE id IN ${LISTED}`).bind(JSON.stringify(ids), due_at).run()
}

/** Postpones batches that were resent, or may still come, twice as long each time. */
export async function markSentAgain(
  db: D1Database,
  ids: readonly string[],
  { now, wait_ms }: { now: number; wait_ms: number },
): Promise<void> {
  if (ids.length === 0) return
  await db
    .prepare(`UPDATE queued SET due_at = ?2 + (?3 << min(attempts, 7)), attempts = attempts + 1 WHERE id IN ${LISTED}`)
    .bind(JSON.stringify(ids), now, wait_ms)
    .run()
}

/** Deletes at most `limit` batches sent before `before`; returns the number. */
export async function forgetQueued(db: D1Database, before: number, limit: number): Promise<number> {
  const sql = 'DELETE FROM queued WHERE id IN (SELECT id FROM queued WHERE id < CAST(?1 AS INTEGER) ORDER BY id LIMIT ?2)'
  return (await db.prepare(sql).bind(seqAt(before), limit).run()).meta.changes
}
