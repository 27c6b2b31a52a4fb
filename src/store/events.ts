import { and, desc, eq, getTableName, gte, inArray, lt, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Span, Statement } from '../core/event-statements.ts'
import { SqlEventStore } from '../core/event-store.ts'
import type { Event } from '../core/event.ts'
import { jsonChunks } from '../base/json-chunks.ts'
import { limits } from '../base/limits.ts'
import { patternMatchesSql } from '../contract/scope-pattern.ts'
import { bytesOf, keysOfPage, pageOf } from './page-by-bytes.ts'
import { events } from './schema.ts'

const LATE_BATCH = 200
/** The condition of the index of statuses, to the letter: SQLite uses it only where a query says the same. */
const UNUSUAL = `status NOT IN ('completed', 'ignored')`

/** Notes events as `queued`, in one statement for each megabyte. Returns the keys (`scope id`) of those that were known before. */
export async function markQueued(db: D1Database, list: readonly Event[], now: number): Promise<Map<string, string>> {
  const known: [string, string][] = []
  for (const chunk of jsonChunks(list.map((event) => JSON.stringify(event)))) {
    const { meta } = await db.prepare(NOTE_QUEUED).bind(chunk, now).run()
    // Rows that come back cost D1 more than rows that go in, so only where it is not known that all are new are they asked for.
    if (meta.changes < list.length) known.push(...(await knownBefore(db, chunk, meta)))
  }
  return new Map(known)
}

const NOTE_QUEUED = `INSERT INTO events (id, scope, type, source, timestamp, trace_id, payload, status, accepted_at)
  SELECT value->>'id', value->>'scope', value->>'type', value->>'source', value->>'timestamp', value->>'$.meta.trace_id', value, 'queued', ?2
  FROM json_each(?1) WHERE true ON CONFLICT (scope, id) DO NOTHING`

/** One statement's rows follow each other, so what was there before stands below the first of them. */
async function knownBefore(db: D1Database, chunk: string, { changes, last_row_id }: D1Meta): Promise<[string, string][]> {
  const below = changes === 0 ? Number.MAX_SAFE_INTEGER : last_row_id - changes
  const { results } = await db
    .prepare(
      `SELECT events.scope, events.id, events.trace_id FROM json_each(?1) JOIN events ON events.id = value->>'id' AND events.scope = value->>'scope' WHERE seq <= ?2`,
    )
    .bind(chunk, below)
    .all<{ scope: string; id: string; trace_id: string }>()
  return results.map(({ scope, id, trace_id }) => [`${scope} ${id}`, trace_id])
}

/** Events that were noted as queued before `before`, or sent again before it, oldest first. */
export async function lateQueued(db: D1Database, before: number): Promise<{ seq: number; event: Event }[]> {
  const { results } = await db
    .prepare(
      `SELECT seq, payload FROM events WHERE seq IN (SELECT seq FROM
          (SELECT seq, late, sum(bytes) OVER (ORDER BY late, seq) - bytes AS before FROM
            (SELECT seq, coalesce(queued_at, accepted_at) AS late, octet_length(payload) AS bytes FROM events
              WHERE status = 'queued' AND ${UNUSUAL} AND coalesce(queued_at, accepted_at) < ?1 ORDER BY late, seq LIMIT ?2))
          WHERE before < ?3) ORDER BY coalesce(queued_at, accepted_at), seq`,
    )
    .bind(before, LATE_BATCH, limits.page_bytes)
    .all<{ seq: number; payload: string }>()
  return results.map(({ seq, payload }) => ({ seq, event: JSON.parse(payload) as Event }))
}

export async function markSentAgain(db: D1Database, seqs: readonly number[], now: number): Promise<void> {
  if (seqs.length === 0) return
  await db
    .prepare(`UPDATE events SET queued_at = ?2 WHERE status = 'queued' AND seq IN (SELECT value FROM json_each(?1))`)
    .bind(JSON.stringify(seqs), now)
    .run()
}

export async function anyQueued(db: D1Database): Promise<boolean> {
  return (await db.prepare(`SELECT 1 FROM events WHERE status = 'queued' AND ${UNUSUAL} LIMIT 1`).first()) !== null
}

const ENDED = `status NOT IN ('queued', 'pending', 'processing', 'dead_lettered')`
type Window = { before: number; now: number; after: number; limit: number }

/**
 * Drops those of the next `limit` ended events that were accepted before `before`. They lie in the order in which they came, so the first batch with none ends it
 * (`next` is null); but not one whose times are ahead of the clock: what comes behind may be old.
 */
export async function forgetEvents(
  db: D1Database,
  { before, now, after, limit }: Window,
): Promise<{ forgotten: number; next: number | null }> {
  const found = await db
    .prepare(
      `SELECT max(seq) AS last, count(*) AS rows, sum(accepted_at < ?1) AS old, sum(accepted_at > ?2) AS ahead
        FROM (SELECT seq, accepted_at FROM events WHERE seq > ?3 AND ${ENDED} ORDER BY seq LIMIT ?4)`,
    )
    .bind(before, now, after, limit)
    .first<{ last: number; rows: number; old: number; ahead: number }>()
  if (!found || found.rows === 0) return { forgotten: 0, next: null }
  if (found.old > 0) {
    const sql = `DELETE FROM events WHERE seq > ?1 AND seq <= ?2 AND ${ENDED} AND accepted_at < ?3`
    await db.prepare(sql).bind(after, found.last, before).run()
  }
  const goes_on = found.rows === limit && (found.old > 0 || found.ahead > 0)
  return { forgotten: found.old, next: goes_on ? found.last : null }
}

const MOST_COUNTED = 10_000

/** How many events D1 should have forgotten, and when the oldest of them was accepted: counted up to ten thousand. */
export async function retentionBacklog(db: D1Database, before: number): Promise<{ events: number; oldest: number | null }> {
  const sql = `SELECT sum(accepted_at < ?1) AS events, min(accepted_at) AS oldest
    FROM (SELECT accepted_at FROM events WHERE ${ENDED} ORDER BY seq LIMIT ${MOST_COUNTED})`
  const row = await db.prepare(sql).bind(before).first<{ events: number | null; oldest: number | null }>()
  return { events: row?.events ?? 0, oldest: row?.oldest ?? null }
}

export type EventQuery = {
  patterns: readonly string[]
  scope?: string | undefined
  type?: string | undefined
  status?: string | undefined
  since?: string | undefined
  until?: string | undefined
  id?: string | undefined
  before?: number | undefined
  limit: number
}

const columns = {
  seq: events.seq,
  id: events.id,
  scope: events.scope,
  type: events.type,
  source: events.source,
  timestamp: events.timestamp,
  status: events.status,
  attempts: events.attempts,
  error: events.error,
  trace_id: events.trace_id,
  payload: events.payload,
  bytes: bytesOf(events.payload, events.error),
}

/** A page of the log of events, newest first. `patterns` are the scopes that the caller may see. */
export async function listEvents(db: D1Database, query: EventQuery) {
  const conditions: (SQL | undefined)[] = [
    within(events.scope, query.patterns),
    query.id === undefined ? undefined : eq(events.id, query.id),
    query.scope === undefined ? undefined : eq(events.scope, query.scope),
    query.type === undefined ? undefined : eq(events.type, query.type),
    query.status === undefined ? undefined : eq(events.status, query.status),
    query.status === undefined || ['completed', 'ignored'].includes(query.status) ? undefined : sql.raw(UNUSUAL),
    query.since === undefined ? undefined : gte(events.timestamp, query.since),
    query.until === undefined ? undefined : lt(events.timestamp, query.until),
    query.before === undefined ? undefined : lt(events.seq, query.before),
  ]
  const where = and(...conditions)
  const page = { from: events, where, key: events.seq, bytes: columns.bytes, limit: query.limit }
  const rows = await drizzle(db)
    .select(columns)
    .from(events)
    .where(inArray(events.seq, keysOfPage(page)))
    .orderBy(desc(events.seq))
  const { items, more } = pageOf(rows, query.limit)
  return { items: items.map(({ payload, ...row }) => ({ ...row, event: JSON.parse(payload) as Event })), more }
}

/** Scopes that one of the patterns matches. */
export function within(column: AnySQLiteColumn, patterns: readonly string[]): SQL | undefined {
  if (patterns.includes('*')) return undefined
  const matches = sql.raw(patternMatchesSql(`"${getTableName(column.table)}"."${column.name}"`))
  return sql`EXISTS (SELECT 1 FROM json_each(${JSON.stringify(patterns)}) WHERE ${matches})`
}

/** History, by core's EventStore over D1's log: of the scopes that one of the patterns matches. */
export function replayEvents(db: D1Database, span: Omit<Span, 'also'>, patterns: readonly string[]): AsyncGenerator<Event> {
  const run = async ({ sql: text, params }: Statement) =>
    (
      await db
        .prepare(text)
        .bind(...params)
        .all()
    ).results
  const store = new SqlEventStore({ run })
  if (patterns.includes('*')) return store.replay(span)
  const covered = `EXISTS (SELECT 1 FROM json_each(?8) WHERE ${patternMatchesSql('events.scope')})`
  return store.replay({ ...span, also: { sql: covered, param: JSON.stringify(patterns) } })
}
