import { getTableName, sql, type SQL } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Event } from '../core/event.ts'
import { byteLength } from '../base/json.ts'
import { PARTIAL } from '../contract/reports/trace.ts'
import type { EventStatus } from '../contract/event-record.ts'
import { limits } from '../base/limits.ts'
import { patternMatchesSql } from '../contract/principal.ts'
import { inFlight, NEAR_MS, seqAt } from './queued.ts'

/** Maximum number of rows a page reads, however few match: its cursor continues there. */
const MOST_LOOKED_AT = 20_000
/** Must equal the condition of the partial index, or SQLite does not use it. */
const UNUSUAL = `status NOT IN ('completed', 'ignored')`

export type EventListing = {
  id: string
  scope: string
  type: string
  source: string
  timestamp: string
  status: EventStatus
  attempts: number
  error: string | null
  trace_id: string
  /** It ended well although a tool call of its turn failed. */
  partial: boolean
  event: Event
}
export type EventFilter = {
  patterns: readonly string[]
  scope?: string | undefined
  types?: readonly string[] | undefined
  status?: EventStatus | undefined
  partial?: boolean | undefined
  since?: string | undefined
  until?: string | undefined
}
type Page = EventFilter & { cursor?: string | undefined; limit: number; rising?: boolean; prompt?: boolean }
/** The names of a queued event are in its payload; a logged event has columns for them. */
type StoredEventRow = Record<'id' | 'scope' | 'type' | 'trace_id', string | null> & {
  key: string
  status: EventStatus
  attempts: number
  error: string | null
  kinds: number | null
  payload: string
}
const NAMES = 'events.id, events.scope, events.type, events.trace_id'
const NAMES_BYTES = 400

/** A page of the event log by acceptance, newest first unless `rising`. */
export async function listEvents(db: D1Database, page: Page): Promise<{ items: EventListing[]; next_cursor: string | null }> {
  const wanted = statements(page)
  const { results } = await db
    .prepare(wanted.page)
    .bind(...wanted.params)
    .all<StoredEventRow>()
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

/**
 * A single condition uses the table's order or an index; the others filter a bounded number of
 * rows.
 */
function statements({ patterns, scope, types, status, partial, since, until, cursor, limit, rising = false, prompt = false }: Page) {
  const isRare = status !== undefined && status !== 'queued' && status !== 'completed' && status !== 'ignored'
  const path = isRare ? `status = ?3 AND ${UNUSUAL}` : scope === undefined ? 'true' : 'scope = ?1'
  const checks = [
    isRare && scope !== undefined ? 'scope = ?1' : null,
    types === undefined ? null : 'type IN (SELECT value FROM json_each(?2))',
    isRare || status === undefined ? null : 'status = ?3',
    partial === undefined ? null : `(kinds & ${PARTIAL}) ${partial ? '<>' : '='} 0`,
    patterns.includes('*') ? null : coveredBy('?6'),
    prompt ? 'happened_at IS NULL' : null,
  ].filter((check) => check !== null)
  const way = rising ? 'ASC' : 'DESC'
  const looked = `SELECT seq AS key, scope, type, status, octet_length(payload) + ${NAMES_BYTES} AS bytes, NULL AS queued, kinds, happened_at FROM events
    WHERE ${path} AND seq > CAST(?4 AS INTEGER) AND seq < CAST(?5 AS INTEGER) ORDER BY seq ${way} LIMIT ${MOST_LOOKED_AT}`
  const waits = `SELECT *, 0 AS kinds, NULL AS happened_at FROM (${inFlight()}) WHERE key > CAST(?4 AS INTEGER) AND key < CAST(?5 AS INTEGER) AND (?1 IS NULL OR scope = ?1)`
  const rest = `WHERE ${['true', ...checks].join(' AND ')} ORDER BY key ${way} LIMIT ?7`
  // Each source is limited separately, so that no more rows are read than the page needs.
  const sources = [status === 'queued' ? null : looked, prompt || (status !== undefined && status !== 'queued') ? null : waits]
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
      SELECT CAST(key AS TEXT) AS key, coalesce(events.status, 'queued') AS status, coalesce(attempts, 0) AS attempts, error, kinds,
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
      .first<StoredEventRow>()
  const logged = await find(
    `SELECT '' AS key, status, attempts, error, kinds, payload, ${NAMES} FROM events WHERE id = ?1 AND ${covered} AND ?4 IS NOT NULL ORDER BY accepted_at DESC LIMIT 1`,
  )
  const row =
    logged ??
    (await find(
      `SELECT '' AS key, 'queued' AS status, 0 AS attempts, NULL AS error, 0 AS kinds, queued AS payload, NULL AS id, NULL AS scope, NULL AS type, NULL AS trace_id FROM (${inFlight('?4')})
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

type History = Omit<EventFilter, 'status'>
const timeOf = ({ timestamp }: Event): number => Date.parse(timestamp)

/**
 * History of the scopes that one of the patterns matches, by the events' own times, oldest first.
 */
export async function* replayEvents(db: D1Database, filter: History): AsyncGenerator<Event> {
  // First: what a scope takes meanwhile is then there twice, rather than missing.
  const waiting = await waitingEvents(db, filter)
  const known = new Set(waiting.map(({ scope, id }) => `${scope} ${id}`))
  for await (const { event, source } of merged([promptEvents(db, filter), lateEvents(db, filter), each(waiting)])) {
    if (source === 2 || !known.has(`${event.scope} ${event.id}`)) yield event
  }
}

/** The events of sources that are in order, in order. `source`: the place of its source. */
async function* merged(sources: readonly AsyncGenerator<Event>[]): AsyncGenerator<{ event: Event; source: number }> {
  const heads: { events: AsyncGenerator<Event>; source: number; event: Event }[] = []
  const advance = async (events: AsyncGenerator<Event>, source: number) => {
    const next = await events.next()
    if (!next.done) heads.push({ events, source, event: next.value })
  }
  for (const [source, events] of sources.entries()) await advance(events, source)
  for (;;) {
    heads.sort((one, other) => timeOf(one.event) - timeOf(other.event))
    const first = heads.shift()
    if (!first) return
    yield { event: first.event, source: first.source }
    await advance(first.events, first.source)
  }
}

async function* each(events: readonly Event[]): AsyncGenerator<Event> {
  yield* events
}

/** Pages of the list, as one sequence. */
async function* eventsOf(db: D1Database, asked: Omit<Page, 'limit' | 'cursor'>): AsyncGenerator<Event> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listEvents>> = await listEvents(db, { ...asked, cursor, limit: 500 })
    for (const { event } of page.items.toSorted((one, other) => timeOf(one.event) - timeOf(other.event))) yield event
    cursor = page.next_cursor
  }
}

const isWithin = ({ since, until }: History) => {
  const first = since === undefined ? -Infinity : Date.parse(since)
  const end = until === undefined ? Infinity : Date.parse(until)
  return (event: Event): boolean => timeOf(event) >= first && timeOf(event) < end
}

/** Events that no scope has reported yet: few, as the queue delivers them at once. */
async function waitingEvents(db: D1Database, { since, until, ...filter }: History): Promise<Event[]> {
  const waiting: Event[] = []
  for await (const event of eventsOf(db, { ...filter, status: 'queued' })) waiting.push(event)
  return waiting.filter(isWithin({ ...filter, since, until })).toSorted((one, other) => timeOf(one) - timeOf(other))
}

/** Events that happened when they were accepted, give or take `NEAR_MS`. */
async function* promptEvents(db: D1Database, filter: History): AsyncGenerator<Event> {
  const near = (time: string | undefined, ms: number) => time && new Date(Date.parse(time) + ms).toISOString()
  const around = { since: near(filter.since, -NEAR_MS), until: near(filter.until, NEAR_MS) }
  const wanted = isWithin(filter)
  for await (const event of eventsOf(db, { ...filter, ...around, rising: true, prompt: true })) if (wanted(event)) yield event
}

const LATE_AT_ONCE = 50

/** Events whose own time is not the time of their acceptance, by an index of their own. */
async function* lateEvents(db: D1Database, { patterns, scope, types, since, until }: History): AsyncGenerator<Event> {
  const checks = [
    scope === undefined ? null : 'scope = ?1',
    types === undefined ? null : 'type IN (SELECT value FROM json_each(?2))',
    patterns.includes('*') ? null : coveredBy('?3'),
  ].filter((check) => check !== null)
  const sql = `SELECT CAST(seq AS TEXT) AS key, happened_at, status, attempts, error, payload, ${NAMES} FROM events
    WHERE happened_at IS NOT NULL AND (happened_at, seq) > (?4, CAST(?5 AS INTEGER)) AND happened_at < ?6
      AND ${['?1 IS NULL OR true', '?2 IS NOT NULL', '?3 IS NOT NULL', ...checks].map((check) => `(${check})`).join(' AND ')}
    ORDER BY happened_at, seq LIMIT ${LATE_AT_ONCE}`
  let at = since === undefined ? 0 : Date.parse(since)
  let key = '-1'
  const end = until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until)
  for (;;) {
    const { results } = await db
      .prepare(sql)
      .bind(scope ?? null, JSON.stringify(types ?? []), JSON.stringify(patterns), at, key, end)
      .all<StoredEventRow & { happened_at: number }>()
    for (const row of results) yield itemOf(row).event
    const last = results.at(-1)
    if (!last || results.length < LATE_AT_ONCE) return
    ;[at, key] = [last.happened_at, last.key]
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

function itemOf({ status, attempts, error, kinds, payload, ...names }: StoredEventRow): EventListing {
  const stored = JSON.parse(payload) as Partial<Event>
  const { trace_id, ...named } = { id: names.id, scope: names.scope, type: names.type, trace_id: names.trace_id }
  const event = { ...named, ...stored, meta: { trace_id, ...stored.meta } } as Event
  const { id, scope, type, source, timestamp, meta } = event
  return {
    id,
    scope,
    type,
    source,
    timestamp,
    status,
    attempts,
    error,
    trace_id: meta.trace_id,
    partial: ((kinds ?? 0) & PARTIAL) !== 0,
    event,
  }
}

const LAST = '9223372036854775807'
const smaller = (...seqs: (string | undefined)[]): string =>
  seqs.reduce<string>((least, seq) => (seq !== undefined && BigInt(seq) < BigInt(least) ? seq : least), LAST)
