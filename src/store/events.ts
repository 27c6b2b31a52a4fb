import { and, getTableName, gte, lt, sql, type SQL } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Event } from '../core/event.ts'
import { byteLength } from '../base/json.ts'
import { PARTIAL } from '../contract/reports/trace.ts'
import type { EventStatus } from '../contract/event-record.ts'
import { limits } from '../base/limits.ts'
import { patternMatchesSql } from '../contract/principal.ts'
import { coveredBy, covers, type EventFilter } from './event-filter.ts'
import { archivedNear } from './packs/archived.ts'
import { packedAmong, packedById } from './packs/find.ts'
import type { PackedEvent } from './packs/format.ts'
import { demandRead, demandWhole, namesOf, noGaps, type Gaps } from './packs/missing.ts'
import { overduePacks } from './packs/merge.ts'
import { packedPage, type PackedPage } from './packs/page.ts'
import { askPacks, damagedAmong } from './packs/rows.ts'
import { rangesOf } from './scope-ranges.ts'
import { archiveOf, packDatabases } from './store.ts'
import { inFlight, msOf, nameOf, NEAR_MS, roundPlace, seqAt } from './queued.ts'

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
/** `archived`: the list continues with what has left D1. */
type Page = EventFilter & { cursor?: string | undefined; limit: number; rising?: boolean; prompt?: boolean; archived?: boolean }
/** A page that ends at `reach` at the latest, with that place. */
type Reaching = Page & { reach?: bigint | null }
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

/** Items before `reach`, which is where the next page begins; null at the end. */
type Half = { items: Placed[]; reach: bigint | null }
type Placed = { key: bigint; bytes: number; item: EventListing }
type Listed = { items: EventListing[]; next_cursor: string | null; archived?: string[] } & ReturnType<typeof namesOf>

/** A page of the event log by acceptance, newest first unless `rising`. */
export async function listEvents(db: D1Database, page: Page): Promise<Listed> {
  // Packs first: an event that changes in between is then there twice, and its row is shown.
  const gaps = noGaps()
  const bucket = page.archived ? archiveOf(db) : undefined
  const archive = bucket && { bucket, days: new Set<string>() }
  const packed = await packedPart(db, page, { ...gaps, archive })
  const rows = await rowsPart(
    db,
    { ...page, reach: packed.reach },
    { ...gaps, packed: new Set(packed.items.map(({ item }) => nameOf(item))) },
  )
  const archived = archive && archive.days.size > 0 ? { archived: [...archive.days].toSorted() } : {}
  return { ...pageOf(page, packed, rows), ...archived, ...namesOf(gaps, page.patterns) }
}

/** The events of both before the nearer `reach`, in order, up to the limits. */
function pageOf({ rising = false, limit }: Page, packed: Half, rows: Half): Listed {
  const isBefore = (one: bigint, other: bigint) => (rising ? one < other : one > other)
  const reach = [packed.reach, rows.reach].reduce(
    (near, one) => (near === null || (one !== null && isBefore(one, near)) ? one : near),
    null,
  )
  const ofRows = new Set(rows.items.map(({ item }) => nameOf(item)))
  const all = [...rows.items, ...packed.items.filter(({ item }) => !ofRows.has(nameOf(item)))]
    .filter(({ key }) => reach === null || !isBefore(reach, key))
    .toSorted((one, other) => (one.key === other.key ? 0 : isBefore(one.key, other.key) ? -1 : 1))
  let bytes = 0
  let count = all.findIndex((placed, index) => index === limit || ((bytes += placed.bytes) >= limits.page_bytes && index > 0))
  if (count === -1) return { items: all.map(({ item }) => item), next_cursor: reach === null ? null : String(reach) }
  // Events of one place are on one page, since a cursor is a place.
  const at = all[count]?.key
  const start = all.findIndex(({ key }) => key === at)
  count = start > 0 ? start : all.findLastIndex(({ key }) => key === at) + 1
  return { items: all.slice(0, count).map(({ item }) => item), next_cursor: String(all[count - 1]?.key) }
}

const isOrdinary = (status: EventStatus | undefined): boolean => status === undefined || status === 'completed' || status === 'ignored'

type Sources = Gaps & { archive: { bucket: R2Bucket; days: Set<string> } | undefined }

async function packedPart(db: D1Database, page: Page, sources: Sources): Promise<Half> {
  // Packs in D1 have no other events.
  if (!isOrdinary(page.status) && !sources.archive) return { items: [], reach: null }
  const { patterns, scope, types, status, partial, limit, rising = false } = page
  const isShown = (event: PackedEvent): boolean =>
    (status === undefined || event.status === status) && (partial === undefined || ((event.kinds & PARTIAL) !== 0) === partial)
  const isWanted = (event: PackedEvent): boolean =>
    (scope === undefined || event.scope === scope) &&
    (types === undefined || types.includes(event.type)) &&
    (sources.archive !== undefined || isShown(event)) &&
    covers(patterns, event.scope)
  const bounds = boundsOf(page)
  const asked = { patterns, scope, types, status, ...bounds, rising, most: limit, isWanted, isShown, sizeOf, ...sources }
  const { events, reach }: PackedPage = await packedPage(db, asked)
  return { items: events.map((event) => ({ key: event.seq, bytes: sizeOf(event), item: packedItem(event) })), reach }
}

const sizeOf = ({ payload }: PackedEvent): number => byteLength(JSON.stringify(payload)) + NAMES_BYTES

const packedItem = ({ payload, ...event }: PackedEvent): EventListing =>
  itemOf({ ...event, key: '', status: event.status as EventStatus, payload: JSON.stringify(payload) })

/**
 * The rows and the events in flight. Those that are in a pack are no longer in flight: the page has
 * the ones in `packed`, and packs are asked for the others.
 */
async function rowsPart(db: D1Database, page: Reaching, { missing, packed }: Gaps & { packed: ReadonlySet<string> }): Promise<Half> {
  const { rows, next } = await rowsOf(db, page)
  const placed = rows
    .map((row) => ({ key: BigInt(row.key), bytes: byteLength(row.payload) + NAMES_BYTES, item: itemOf(row) }))
    .filter(({ item }) => item.status !== 'queued' || !packed.has(nameOf(item)))
  const waiting = placed.filter(({ item }) => item.status === 'queued')
  const sent = waiting.reduce((least, { key }) => (key < least ? key : least), BigInt(LAST))
  const known = await packedAmong(
    db,
    waiting.map(({ item }) => item),
    { since: msOf(sent) - SKEW_MS, missing },
  )
  const { after, before } = boundsOf(page)
  const items = placed.flatMap((one) => {
    const event = one.item.status === 'queued' ? known.get(nameOf(one.item)) : undefined
    if (!event) return [one]
    const item = packedItem(event)
    const isListed = page.status === undefined && (page.partial ?? item.partial) === item.partial
    // Its place in the pack may be on another page, which lists it.
    const isHere = event.seq > after && event.seq < before
    return isListed && isHere ? [{ ...one, key: event.seq, item }] : []
  })
  return { items, reach: next === null ? null : BigInt(next) }
}

/** The note of a batch and the events in it have the clocks of different machines. */
const SKEW_MS = 60_000

async function rowsOf(db: D1Database, page: Reaching): Promise<{ rows: StoredEventRow[]; next: string | null }> {
  const wanted = statements(page)
  const { results } = await db
    .prepare(wanted.page)
    .bind(...wanted.params)
    .all<StoredEventRow>()
  const rows = results.slice(0, page.limit)
  const bytes = rows.reduce((sum, { payload }) => sum + byteLength(payload) + NAMES_BYTES, 0)
  if (results.length > page.limit || (rows.length > 1 && bytes >= limits.page_bytes)) {
    const shown = results.length > page.limit ? rows : rows.slice(0, -1)
    return { rows: shown, next: shown.at(-1)?.key ?? null }
  }
  // A short page is the last one, unless it reached the limit of rows read.
  const looked = wanted.looked && (await wanted.looked(db).first<{ rows: number; last: string }>())
  if (!looked || looked.rows < MOST_LOOKED_AT) return { rows, next: null }
  const { rising = false, patterns } = page
  const last = BigInt(looked.last)
  const next = patterns.includes('*') ? last : (roundPlace(last, { rising, ...boundsOf(page) }) ?? last)
  const isBehind = (key: string) => (rising ? BigInt(key) > next : BigInt(key) < next)
  return { rows: rows.filter(({ key }) => !isBehind(key)), next: String(next) }
}

/** The places between which the page is; they are outside. */
function boundsOf({ rising = false, since, until, cursor, reach = null }: Reaching): { after: bigint; before: bigint } {
  const from = since === undefined ? -1n : BigInt(seqAt(Date.parse(since))) - 1n
  const after = rising && cursor !== undefined ? BigInt(cursor) : from
  const before = BigInt(smaller(rising ? undefined : cursor, until === undefined ? undefined : seqAt(Date.parse(until))))
  if (reach === null) return { after, before }
  return rising ? { after, before: reach + 1n < before ? reach + 1n : before } : { after: reach - 1n > after ? reach - 1n : after, before }
}

/**
 * A single condition uses the table's order or an index; the others filter a bounded number of
 * rows.
 */
function statements(asked: Reaching) {
  const { patterns, scope, types, status, partial, limit, rising = false, prompt = false } = asked
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
  const waits = `SELECT *, 0 AS kinds, NULL AS happened_at FROM (${inFlight({ after: 'CAST(?4 AS INTEGER)' })}) WHERE key > CAST(?4 AS INTEGER) AND key < CAST(?5 AS INTEGER) AND (?1 IS NULL OR scope = ?1)`
  const rest = `WHERE ${['true', ...checks].join(' AND ')} ORDER BY key ${way} LIMIT ?7`
  // Each source is limited separately, so that no more rows are read than the page needs.
  const sources = [status === 'queued' ? null : looked, prompt || (status !== undefined && status !== 'queued') ? null : waits]
    .filter((source) => source !== null)
    .map((source) => `SELECT * FROM (SELECT * FROM (${source}) ${rest})`)
  const bounds = boundsOf(asked)
  const params = [
    scope ?? null,
    JSON.stringify(types ?? []),
    status ?? null,
    String(bounds.after),
    String(bounds.before),
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

/**
 * The newest event with this id that the caller may see, in D1 or else in the archive, by the time
 * in its id, or where `elsewhere` looks. Fails if a database or a pack that may have it cannot be
 * read, and nothing else has it.
 */
export async function findEvent(
  db: D1Database,
  id: string,
  { patterns, scope, elsewhere }: Pick<EventFilter, 'patterns' | 'scope'> & { elsewhere?: () => Promise<EventListing | null> },
): Promise<EventListing | null> {
  const isSeen = (name: string) => (scope === undefined || name === scope) && covers(patterns, name)
  const covered = `(?2 IS NULL OR scope = ?2) AND ${coveredBy('?3')}`
  const params = [id, scope ?? null, JSON.stringify(patterns), JSON.stringify(id).slice(1, -1)]
  const find = (sql: string) =>
    db
      .prepare(sql)
      .bind(...params)
      .first<StoredEventRow & { accepted_at: number }>()
  const { missing, damaged } = noGaps()
  const packed = (await packedById(db, id, { missing, damaged }))
    .filter((event) => isSeen(event.scope))
    .toSorted((one, other) => one.accepted_at - other.accepted_at)
    .at(-1)
  const logged = await find(
    `SELECT '' AS key, status, attempts, error, kinds, payload, accepted_at, ${NAMES} FROM events WHERE id = ?1 AND ${covered} AND ?4 IS NOT NULL ORDER BY accepted_at DESC LIMIT 1`,
  )
  if (packed && packed.accepted_at > (logged?.accepted_at ?? -Infinity)) return packedItem(packed)
  const row =
    logged ??
    (await find(
      `SELECT '' AS key, 'queued' AS status, 0 AS attempts, NULL AS error, 0 AS kinds, queued AS payload, 0 AS accepted_at, NULL AS id, NULL AS scope, NULL AS type, NULL AS trace_id
        FROM (${inFlight({ text: '?4' })}) WHERE queued->>'id' = ?1 AND ${covered} ORDER BY key DESC LIMIT 1`,
    ))
  if (row) return itemOf(row)
  const isWanted = (event: PackedEvent) => event.id === id && isSeen(event.scope)
  const archived = (await archivedNear(db, id, { isWanted, missing })).toSorted((one, other) => one.revision - other.revision).at(-1)
  if (archived) return packedItem(archived)
  const known = (await elsewhere?.()) ?? null
  if (known) return known
  demandWhole({ missing })
  // A pack of other scopes would tell a caller that they have an event of this id.
  if (damaged.size > 0) demandRead(await damagedAmong(db, damaged, isSeen), patterns)
  return null
}

export function within(column: AnySQLiteColumn, patterns: readonly string[]): SQL | undefined {
  if (patterns.includes('*')) return undefined
  const matches = sql.raw(patternMatchesSql(`"${getTableName(column.table)}"."${column.name}"`))
  return sql`EXISTS (SELECT 1 FROM json_each(${JSON.stringify(patterns)}) WHERE ${matches})`
}

/** The same, within bounds by name: where an index has them, a key of few scopes reads few rows. */
export function withinBounds(column: AnySQLiteColumn, patterns: readonly string[]): SQL | undefined {
  if (patterns.includes('*')) return undefined
  const ranges = rangesOf(patterns)
  const first = ranges.map((range) => range.first).toSorted()[0] ?? ''
  const end =
    ranges
      .map((range) => range.end)
      .toSorted()
      .at(-1) ?? ''
  const isWhole = ranges.length === 1 && ranges[0]?.is_exact === true
  return and(gte(column, first), lt(column, end), isWhole ? undefined : within(column, patterns))
}

type History = Omit<EventFilter, 'status'> & { rest?: (events: number) => Promise<void> }
const timeOf = ({ timestamp }: Event): number => Date.parse(timestamp)

/**
 * History of the scopes that one of the patterns matches, by the events' own times, oldest first.
 * Thousands may be read before the first one comes: `rest` lets others be served after each page.
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
async function* eventsOf(
  db: D1Database,
  { rest, ...asked }: Omit<Page, 'limit' | 'cursor'> & Pick<History, 'rest'>,
): AsyncGenerator<Event> {
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page: Awaited<ReturnType<typeof listEvents>> = await listEvents(db, { ...asked, cursor, limit: 500 })
    demandWhole({ missing: new Set(page.missing), damaged: new Set(page.damaged) })
    await rest?.(page.items.length)
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

/** Events after which those that are held are sorted, and the characters held at most. */
const SORTED_EVERY = 500
const MOST_HELD = 8_000_000

/**
 * Events that happened when they were accepted, give or take `NEAR_MS`, in order. Where too many
 * are held for that, the oldest come out.
 */
async function* promptEvents(db: D1Database, filter: History): AsyncGenerator<Event> {
  const near = (time: string | undefined, ms: number) => time && new Date(Date.parse(time) + ms).toISOString()
  const around = { since: near(filter.since, -NEAR_MS), until: near(filter.until, NEAR_MS) }
  const wanted = isWithin(filter)
  const held: { event: Event; at: number; size: number }[] = []
  let [read, latest, size] = [0, -Infinity, 0]
  for await (const event of eventsOf(db, { ...filter, ...around, rising: true, prompt: true })) {
    const one = { event, at: timeOf(event), size: JSON.stringify(event).length }
    latest = Math.max(latest, one.at)
    if (wanted(event)) {
      held.push(one)
      size += one.size
    }
    if ((read += 1) % SORTED_EVERY !== 0) continue
    held.sort((first, second) => first.at - second.at)
    // An event that follows was accepted later, and happened less than NEAR_MS before that.
    // Taken out together: each `shift` of a long list moves all that follow.
    let count = 0
    for (const { at, size: own } of held) {
      if (at >= latest - 2 * NEAR_MS && size <= MOST_HELD) break
      size -= own
      count += 1
    }
    for (const { event: first } of held.splice(0, count)) yield first
  }
  for (const { event } of held.toSorted((first, second) => first.at - second.at)) yield event
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

/** `leaving` takes the events first, which it may move elsewhere. */
type Forgetting = {
  before: number
  after: string
  limit: number
  packed: string | null
  leaving?: ((events: readonly PackedEvent[]) => Promise<unknown>) | undefined
}

/**
 * Deletes rows of ended events, filed and accepted before `before`, of the next `limit` after
 * `after`. `packed` is the place of the oldest packed event: a later row may hide one.
 */
export async function forgetEvents(
  db: D1Database,
  { before, after, limit, packed, leaving }: Forgetting,
): Promise<{ forgotten: number; next: string | null }> {
  const end = smaller(seqAt(before), packed ?? undefined)
  const found = await db
    .prepare(
      `SELECT CAST(max(seq) AS TEXT) AS last, count(*) AS rows, sum(accepted_at < ?1) AS old
        FROM (SELECT seq, accepted_at FROM events WHERE seq > CAST(?2 AS INTEGER) AND seq < CAST(?3 AS INTEGER) AND ${ENDED} ORDER BY seq LIMIT ?4)`,
    )
    .bind(before, after, end, limit)
    .first<{ last: string; rows: number; old: number }>()
  if (!found || found.rows === 0) return { forgotten: 0, next: null }
  if (found.old > 0) {
    const old = `seq > CAST(?1 AS INTEGER) AND seq <= CAST(?2 AS INTEGER) AND ${ENDED} AND accepted_at < ?3`
    const params = [after, found.last, before]
    if (leaving) await moveRows(db, { old, params, leaving })
    else
      await db
        .prepare(`DELETE FROM events WHERE ${old}`)
        .bind(...params)
        .run()
  }
  return { forgotten: found.old, next: found.rows === limit ? found.last : null }
}

type OldRow = Omit<PackedEvent, 'seq' | 'payload' | 'agent' | 'log_from'> & {
  seq: string
  payload: string
  agent: string | null
  log_from: number | null
}

/** Deletes rows that have arrived elsewhere, unless they have changed meanwhile. */
async function moveRows(
  db: D1Database,
  { old, params, leaving }: { old: string; params: readonly unknown[]; leaving: NonNullable<Forgetting['leaving']> },
): Promise<void> {
  const sql = `SELECT CAST(seq AS TEXT) AS seq, id, scope, type, status, attempts, error, accepted_at, ended_at, revision, agent,
      coalesce(trace_id, '') AS trace_id, log_from, kinds, skills, payload FROM events WHERE ${old}`
  const { results } = await db
    .prepare(sql)
    .bind(...params)
    .all<OldRow>()
  await leaving(
    results.map(({ seq, payload, agent, log_from, ...row }) => ({
      ...row,
      seq: BigInt(seq),
      agent: agent ?? '',
      log_from: log_from ?? 1,
      payload: JSON.parse(payload) as unknown,
    })),
  )
  await db
    .prepare(
      `DELETE FROM events WHERE seq IN (SELECT CAST(value->>0 AS INTEGER) FROM json_each(?1))
        AND (seq, revision) IN (SELECT CAST(value->>0 AS INTEGER), value->>1 FROM json_each(?1))`,
    )
    .bind(JSON.stringify(results.map(({ seq, revision }) => [seq, revision])))
    .run()
}

const MOST_COUNTED = 10_000

/**
 * The overdue events in the databases that answer, rows counted up to ten thousand, and when the
 * oldest was accepted.
 */
export async function retentionBacklog(db: D1Database, before: number): Promise<{ events: number; oldest: number | null }> {
  const sql = `SELECT sum(accepted_at < ?1) AS events, min(accepted_at) AS oldest
    FROM (SELECT accepted_at FROM events WHERE ${ENDED} ORDER BY seq LIMIT ${MOST_COUNTED})`
  const row = await db.prepare(sql).bind(before).first<{ events: number | null; oldest: number | null }>()
  const packs = await Promise.all(packDatabases(db).map((at) => askPacks(at, new Set(), (one) => overduePacks(one, before))))
  const oldest = [row?.oldest, ...packs.map((one) => one?.oldest)].filter((at) => typeof at === 'number')
  const events = packs.reduce((sum, one) => sum + (one?.events ?? 0), row?.events ?? 0)
  return { events, oldest: oldest.length === 0 ? null : Math.min(...oldest) }
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
