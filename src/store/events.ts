import { getTableName, sql, type SQL } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Event } from '../core/event.ts'
import { byteLength } from '../base/byte-length.ts'
import type { EventStatus } from '../contract/event-record.ts'
import { limits } from '../base/limits.ts'
import { patternMatchesSql } from '../contract/settings/scope-pattern.ts'
import { inFlight, seqAt } from './queued.ts'

/** Maximum number of rows a page reads, however few match: its cursor continues there. */
const MOST_LOOKED_AT = 20_000
/** Must equal the condition of the partial index, or SQLite does not use it. */
const UNUSUAL = `status NOT IN ('completed', 'ignored')`

export type LoggedEvent = {
  id: string
  scope: string
  type: string
  source: string
  timestamp: string
  status: EventStatus
  attempts: number
  error: string | null
  trace_id: string
  event: Event
}
export type EventFilter = {
  patterns: readonly string[]
  scope?: string | undefined
  types?: readonly string[] | undefined
  status?: EventStatus | undefined
  since?: string | undefined
  until?: string | undefined
}
type Page = EventFilter & { cursor?: string | undefined; limit: number; rising?: boolean }
/** The names of a queued event are in its payload, those of a logged one have columns. */
type Row = Record<'id' | 'scope' | 'type' | 'trace_id', string | null> & {
  key: string
  status: EventStatus
  attempts: number
  error: string | null
  payload: string
}
const NAMES = 'events.id, events.scope, events.type, events.trace_id'
const NAMES_BYTES = 400

/** A page of the event log by time, newest first unless `rising`. */
export async function listEvents(db: D1Database, page: Page): Promise<{ items: LoggedEvent[]; next_cursor: string | null }> {
  const wanted = statements(page)
  const { results } = await db
    .prepare(wanted.page)
    .bind(...wanted.params)
    .all<Row>()
  const rows = results.slice(0, page.limit)
  const bytes = rows.reduce((sum, { payload }) => sum + byteLength(payload) + NAMES_BYTES, 0)
  if (results.length > page.limit || (rows.length > 1 && bytes >= limits.page_bytes)) {
    const shown = results.length > page.limit ? rows : rows.slice(0, -1)
    return { items: shown.map(itemOf), next_cursor: shown.at(-1)?.key ?? null }
  }
  // A short page is the last one, unless it reached the limit of rows read.
  const looked = wanted.looked && (await wanted.looked(db).first<{ rows: number; last: string }>())
  if (!looked || looked.rows < MOST_LOOKED_AT) return { items: rows.map(itemOf), next_cursor: null }
  const isBehind = (key: string) => (page.rising ? BigInt(key) > BigInt(looked.last) : BigInt(key) < BigInt(looked.last))
  return { items: rows.filter(({ key }) => !isBehind(key)).map(itemOf), next_cursor: looked.last }
}

/** One condition uses the table's order or an index; the others filter a bounded number of rows. */
function statements({ patterns, scope, types, status, since, until, cursor, limit, rising = false }: Page) {
  const isRare = status !== undefined && status !== 'queued' && status !== 'completed' && status !== 'ignored'
  const path = isRare ? `status = ?3 AND ${UNUSUAL}` : scope === undefined ? 'true' : 'scope = ?1'
  const checks = [
    isRare && scope !== undefined ? 'scope = ?1' : null,
    types === undefined ? null : 'type IN (SELECT value FROM json_each(?2))',
    isRare || status === undefined ? null : 'status = ?3',
    patterns.includes('*') ? null : coveredBy('?6'),
  ].filter((check) => check !== null)
  const way = rising ? 'ASC' : 'DESC'
  const looked = `SELECT seq AS key, scope, type, status, octet_length(payload) + ${NAMES_BYTES} AS bytes, NULL AS queued FROM events
    WHERE ${path} AND seq > CAST(?4 AS INTEGER) AND seq < CAST(?5 AS INTEGER) ORDER BY seq ${way} LIMIT ${MOST_LOOKED_AT}`
  const waits = `SELECT * FROM (${inFlight()}) WHERE key > CAST(?4 AS INTEGER) AND key < CAST(?5 AS INTEGER) AND (?1 IS NULL OR scope = ?1)`
  const rest = `WHERE ${['true', ...checks].join(' AND ')} ORDER BY key ${way} LIMIT ?7`
  // Each source is limited separately, so that no more rows are read than the page needs.
  const sources = [status === 'queued' ? null : looked, status !== undefined && status !== 'queued' ? null : waits]
    .filter((source) => source !== null)
    .map((source) => `SELECT * FROM (SELECT * FROM (${source}) ${rest})`)
  const params = [
    scope ?? null,
    JSON.stringify(types ?? []),
    status ?? null,
    (rising ? cursor : undefined) ?? (since === undefined ? '-1' : `${BigInt(seqAt(Date.parse(since))) - 1n}`),
    smaller(rising ? undefined : cursor, until === undefined ? undefined : seqAt(Date.parse(until))),
    JSON.stringify(patterns),
    limit + 1,
    limits.page_bytes,
  ]
  return {
    params,
    page: `WITH page AS MATERIALIZED (SELECT key, queued FROM (SELECT key, queued, sum(bytes) OVER (ORDER BY key ${way}) - bytes AS before
        FROM (SELECT * FROM (${sources.join(' UNION ALL ')}) ORDER BY key ${way} LIMIT ?7)) WHERE before < ?8)
      SELECT CAST(key AS TEXT) AS key, coalesce(events.status, 'queued') AS status, coalesce(attempts, 0) AS attempts, error,
        coalesce(queued, payload) AS payload, ${NAMES}
      FROM page LEFT JOIN events ON queued IS NULL AND seq = key ORDER BY page.key ${way}`,
    looked:
      status === 'queued' || checks.length === 0
        ? null
        : (db: D1Database) =>
            db
              .prepare(`SELECT count(*) AS rows, CAST(${rising ? 'max' : 'min'}(key) AS TEXT) AS last FROM (${looked})`)
              .bind(...params.slice(0, 5)),
  }
}

/** The newest event with this id that the caller may see. */
export async function findEvent(db: D1Database, id: string, { patterns, scope }: Pick<EventFilter, 'patterns' | 'scope'>) {
  const covered = `(?2 IS NULL OR scope = ?2) AND ${coveredBy('?3')}`
  const params = [id, scope ?? null, JSON.stringify(patterns), JSON.stringify(id).slice(1, -1)]
  const find = (sql: string) =>
    db
      .prepare(sql)
      .bind(...params)
      .first<Row>()
  const logged = await find(
    `SELECT '' AS key, status, attempts, error, payload, ${NAMES} FROM events WHERE id = ?1 AND ${covered} AND ?4 IS NOT NULL ORDER BY accepted_at DESC LIMIT 1`,
  )
  const row =
    logged ??
    (await find(
      `SELECT '' AS key, 'queued' AS status, 0 AS attempts, NULL AS error, queued AS payload, NULL AS id, NULL AS scope, NULL AS type, NULL AS trace_id FROM (${inFlight('?4')})
        WHERE queued->>'id' = ?1 AND ${covered} ORDER BY key DESC LIMIT 1`,
    ))
  return row && itemOf(row)
}

/** SQL that is true if one of the patterns in the JSON array `patterns` matches the scope. */
export const coveredBy = (patterns: string, scope = 'scope'): string =>
  `EXISTS (SELECT 1 FROM json_each(${patterns}) WHERE ${patternMatchesSql(scope)})`

export function within(column: AnySQLiteColumn, patterns: readonly string[]): SQL | undefined {
  if (patterns.includes('*')) return undefined
  const matches = sql.raw(patternMatchesSql(`"${getTableName(column.table)}"."${column.name}"`))
  return sql`EXISTS (SELECT 1 FROM json_each(${JSON.stringify(patterns)}) WHERE ${matches})`
}

/** History of the scopes that one of the patterns matches, oldest first. */
export async function* replayEvents(db: D1Database, filter: Omit<EventFilter, 'status'>): AsyncGenerator<Event> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listEvents>> = await listEvents(db, { ...filter, cursor, limit: 500, rising: true })
    for (const { event } of page.items) yield event
    cursor = page.next_cursor
  }
}

const ENDED = `status NOT IN ('queued', 'pending', 'processing', 'dead_lettered')`

/** Deletes ended events, filed and accepted before `before`, of the next `limit` after `after`. */
export async function forgetEvents(
  db: D1Database,
  { before, after, limit }: { before: number; after: string; limit: number },
): Promise<{ forgotten: number; next: string | null }> {
  const found = await db
    .prepare(
      `SELECT CAST(max(seq) AS TEXT) AS last, count(*) AS rows, sum(accepted_at < ?1) AS old
        FROM (SELECT seq, accepted_at FROM events WHERE seq > CAST(?2 AS INTEGER) AND seq < CAST(?3 AS INTEGER) AND ${ENDED} ORDER BY seq LIMIT ?4)`,
    )
    .bind(before, after, seqAt(before), limit)
    .first<{ last: string; rows: number; old: number }>()
  if (!found || found.rows === 0) return { forgotten: 0, next: null }
  if (found.old > 0) {
    const sql = `DELETE FROM events WHERE seq > CAST(?1 AS INTEGER) AND seq <= CAST(?2 AS INTEGER) AND ${ENDED} AND accepted_at < ?3`
    await db.prepare(sql).bind(after, found.last, before).run()
  }
  return { forgotten: found.old, next: found.rows === limit ? found.last : null }
}

const MOST_COUNTED = 10_000

/** The overdue events in D1, counted up to ten thousand, and when the oldest was accepted. */
export async function retentionBacklog(db: D1Database, before: number): Promise<{ events: number; oldest: number | null }> {
  const sql = `SELECT sum(accepted_at < ?1) AS events, min(accepted_at) AS oldest
    FROM (SELECT accepted_at FROM events WHERE ${ENDED} ORDER BY seq LIMIT ${MOST_COUNTED})`
  const row = await db.prepare(sql).bind(before).first<{ events: number | null; oldest: number | null }>()
  return { events: row?.events ?? 0, oldest: row?.oldest ?? null }
}

function itemOf({ status, attempts, error, payload, ...names }: Row): LoggedEvent {
  const stored = JSON.parse(payload) as Partial<Event>
  const { trace_id, ...named } = { id: names.id, scope: names.scope, type: names.type, trace_id: names.trace_id }
  const event = { ...named, ...stored, meta: { trace_id, ...stored.meta } } as Event
  const { id, scope, type, source, timestamp, meta } = event
  return { id, scope, type, source, timestamp, status, attempts, error, trace_id: meta.trace_id, event }
}

const LAST = '9223372036854775807'
const smaller = (...seqs: (string | undefined)[]): string =>
  seqs.reduce<string>((least, seq) => (seq !== undefined && BigInt(seq) < BigInt(least) ? seq : least), LAST)
