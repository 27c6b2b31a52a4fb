import { isoOrNull } from '../../base/time.ts'
import { bitOf, kindsIn, PARTIAL, type SpanKind, type TraceStatus, type TraceSummary } from '../../contract/reports/trace.ts'
import { coveredBy, covers } from '../event-filter.ts'
import { archivedNear } from '../packs/archived.ts'
import { packedByTrace } from '../packs/find.ts'
import type { PackedEvent } from '../packs/format.ts'
import { namesOf, noGaps, type Gaps } from '../packs/missing.ts'
import { packedPage } from '../packs/page.ts'
import { inOrder } from '../packs/rows.ts'
import { msOf, nameOf, seqAt, roundPlace } from '../queued.ts'
import { jsonChunks } from '../../base/json.ts'

/** A scope's part of a trace, by the log entries that name no event. Times in ms. */
export type CallReport = {
  trace_id: string
  log_from: number
  kinds: number
  skills: string
  started_at: number
  ended_at: number
  status: 'running' | 'ok' | 'error'
  /** The newest log entry that the report includes. */
  revision: number
}

/** Writes reports. Stale ones change nothing; a repeated one changes nothing either. */
export async function replicateCalls(db: D1Database, { scope, agent }: { scope: string; agent: string }, calls: readonly CallReport[]) {
  const chunks = jsonChunks(calls.map((call) => JSON.stringify({ ...call, seq: placeOf(call) })))
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(UPSERT).bind(chunk, scope, agent)))
}

/** Filed as events are, by time. The last bits tell apart the calls of a millisecond. */
const placeOf = ({ trace_id, started_at }: CallReport): string =>
  String(BigInt(seqAt(started_at)) + (BigInt(`0x${trace_id.slice(-5)}`) & 0xfffffn))

const UPSERT = `INSERT INTO calls (trace_id, scope, seq, agent, log_from, kinds, skills, started_at, ended_at, status, revision)
  SELECT value->>'trace_id', ?2, CAST(value->>'seq' AS INTEGER), ?3, value->>'log_from', value->>'kinds', value->>'skills', value->>'started_at', value->>'ended_at',
    value->>'status', value->>'revision' FROM json_each(?1) WHERE true
  ON CONFLICT (trace_id, scope) DO UPDATE SET agent = excluded.agent, log_from = min(calls.log_from, excluded.log_from), kinds = calls.kinds | excluded.kinds,
    skills = CASE WHEN instr(calls.skills, excluded.skills) > 0 THEN calls.skills ELSE substr(calls.skills || excluded.skills, 1, 4000) END,
    started_at = min(calls.started_at, excluded.started_at), ended_at = max(calls.ended_at, excluded.ended_at), revision = excluded.revision,
    status = CASE WHEN calls.status = 'error' AND excluded.status = 'ok' THEN 'error' ELSE excluded.status END
  WHERE excluded.revision > calls.revision`

/** Deletes at most `limit` calls that ended before `before`. */
export async function forgetCalls(db: D1Database, before: number, limit: number): Promise<number> {
  const sql = `DELETE FROM calls WHERE (trace_id, scope) IN
    (SELECT trace_id, scope FROM calls WHERE seq < CAST(?1 AS INTEGER) AND ended_at < ?2 ORDER BY seq LIMIT ?3)`
  return (await db.prepare(sql).bind(seqAt(before), before, limit).run()).meta.changes
}

/** Events of earlier versions may be filed so much before or after the time in their trace's id. */
const NEAR_MS = 20
/** A time in a trace's id that is older was made by a caller, or the queue was long away. */
const MOST_WAIT_MS = 3_600_000

const timeIn = (trace_id: string): number | null => (trace_id[12] === '7' ? Number.parseInt(trace_id.slice(0, 12), 16) : null)

type Filed = { trace_id: string; parent_id: string | null; accepted_at: number }

/**
 * The time in ms under which an event is filed: when the deployment took it. A trace that is made
 * with its event has this time in its id; a scope accepts what comes by the queue later.
 */
export function filedAt({ trace_id, parent_id, accepted_at }: Filed): number {
  const time = parent_id === null ? timeIn(trace_id) : null
  return time !== null && time <= accepted_at && accepted_at - time < MOST_WAIT_MS ? time : accepted_at
}

/** The key by which the event's trace is indexed; null if the time in its id finds it. */
export const traceKey = (event: Filed): string | null =>
  event.parent_id === null && filedAt(event) === timeIn(event.trace_id) ? null : event.trace_id

/** Times of a trace's events that its id finds, as `seq`. */
function rangeOf(trace_id: string): [string, string] {
  const time = timeIn(trace_id)
  return time === null ? ['0', '0'] : [seqAt(time - NEAR_MS), seqAt(time + NEAR_MS)]
}

/** `key`: its place in lists. */
export type TraceEvent = {
  key: string
  trace_id: string
  id: string
  scope: string
  type: string
  status: string
  accepted_at: number
  ended_at: number | null
  agent: string | null
  kinds: number
  skills: string
  log_from: number | null
  revision: number
}

const COLUMNS = 'trace_id, events.id, scope, events.type, status, accepted_at, ended_at, agent, kinds, skills, log_from, revision'
const MOST_EVENTS = 5000

/**
 * The events of these traces that the caller may see, oldest first. None is older than `since`. The
 * events of a single trace that D1 does not have may be in the archive.
 */
export async function eventsOfTraces(
  db: D1Database,
  trace_ids: readonly string[],
  patterns: readonly string[],
  { since = 0, ...gaps }: { since?: number } & Partial<Gaps> = {},
): Promise<TraceEvent[]> {
  // Packs first: an event that changes in between is then there twice, and its row is shown.
  const isWanted = ({ scope }: PackedEvent): boolean => covers(patterns, scope)
  const packed = await packedByTrace(db, trace_ids, { since, ...gaps, most: MOST_EVENTS, isWanted })
  const asked = JSON.stringify(trace_ids.map((trace_id) => [trace_id, ...rangeOf(trace_id)]))
  const covered = patterns.includes('*') ? '?2 IS NOT NULL' : coveredBy('?2')
  const sql = `SELECT CAST(seq AS TEXT) AS key, * FROM (
      SELECT seq, ${COLUMNS} FROM json_each(?1) AS asked CROSS JOIN events ON trace_key = asked.value->>0
      UNION ALL
      SELECT seq, ${COLUMNS} FROM json_each(?1) AS asked CROSS JOIN events
        ON seq >= CAST(asked.value->>1 AS INTEGER) AND seq < CAST(asked.value->>2 AS INTEGER) AND trace_id = asked.value->>0 AND trace_key IS NULL
    ) WHERE ${covered} ORDER BY seq LIMIT ${MOST_EVENTS}`
  const { results } = await db.prepare(sql).bind(asked, JSON.stringify(patterns)).all<TraceEvent>()
  if (packed.length === 0 && results.length === 0) return archivedTrace(db, trace_ids, isWanted, gaps)
  if (packed.length === 0) return results
  const ofRows = new Set(results.map(nameOf))
  return [...results, ...packed.filter((event) => !ofRows.has(nameOf(event))).map(traceEvent)]
    .toSorted((one, other) => (BigInt(one.key) < BigInt(other.key) ? -1 : 1))
    .slice(0, MOST_EVENTS)
}

async function archivedTrace(
  db: D1Database,
  [trace_id, ...others]: readonly string[],
  isWanted: (event: PackedEvent) => boolean,
  { missing }: Partial<Gaps>,
): Promise<TraceEvent[]> {
  if (trace_id === undefined || others.length > 0) return []
  const found = await archivedNear(db, trace_id, { isWanted: (event) => event.trace_id === trace_id && isWanted(event), missing })
  return found.toSorted(inOrder).slice(0, MOST_EVENTS).map(traceEvent)
}

const traceEvent = ({ seq, ...event }: PackedEvent): TraceEvent => ({ ...event, key: String(seq) })

export type TraceCall = Pick<TraceEvent, 'trace_id' | 'scope' | 'agent' | 'kinds' | 'skills' | 'status'> & {
  started_at: number
  ended_at: number
  log_from: number
  revision: number
}
const CALL_COLUMNS = 'trace_id, scope, agent, kinds, skills, status, started_at, ended_at, log_from, revision'

/** The parts of these traces that name no event, in the scopes that the caller may see. */
export async function callsOfTraces(db: D1Database, trace_ids: readonly string[], patterns: readonly string[]): Promise<TraceCall[]> {
  const covered = patterns.includes('*') ? '?2 IS NOT NULL' : coveredBy('?2')
  const sql = `SELECT ${CALL_COLUMNS} FROM calls WHERE trace_id IN (SELECT value FROM json_each(?1)) AND ${covered} ORDER BY seq LIMIT ${MOST_EVENTS}`
  const { results } = await db.prepare(sql).bind(JSON.stringify(trace_ids), JSON.stringify(patterns)).all<TraceCall>()
  return results
}

type TraceQuery = {
  patterns: readonly string[]
  scope?: string | undefined
  agent?: string | undefined
  kind?: SpanKind | undefined
  status?: TraceStatus | undefined
  skill?: string | undefined
  since?: string | undefined
  until?: string | undefined
  min_duration_ms?: number | undefined
  cursor?: string | undefined
  limit: number
}

/** Maximum number of rows that a page reads, however few match: its cursor continues there. */
const MOST_LOOKED_AT = 20_000
/** The sources of the list: events, and calls that name no event. */
const sources = {
  events: {
    started_at: 'accepted_at',
    statuses: {
      running: ['pending', 'processing'],
      ok: ['completed', 'ignored'],
      partial: ['completed'],
      error: ['dead_lettered', 'cancelled'],
    },
    newer: 'other.trace_key = one.trace_id',
  },
  calls: {
    started_at: 'started_at',
    statuses: { running: ['running'], ok: ['ok'], partial: [], error: ['error'] },
    newer: 'other.trace_id = one.trace_id',
  },
}
type Source = keyof typeof sources

/** True if a tool failed although the event completed. */
const isPartial = ({ kinds }: { kinds: number }): boolean => (kinds & PARTIAL) !== 0
const partialIs: Partial<Record<TraceStatus, boolean>> = { ok: false, partial: true }

/** Conditions on a row, in the table or alias `of`. Unused parameters are named all the same. */
function conditions(of: string, source: Source, { patterns, scope, agent, kind, status, skill, min_duration_ms }: TraceQuery): string {
  const { started_at, statuses } = sources[source]
  const checks = [
    scope === undefined ? null : `${of}.scope = ?3`,
    agent === undefined ? null : `${of}.agent = ?4`,
    kind === undefined ? null : `(${of}.kinds & ${bitOf(kind)}) <> 0`,
    status === undefined ? null : `${of}.status IN (${statuses[status].map((name) => `'${name}'`).join(', ')})`,
    partialIs[status ?? 'running'] === undefined ? null : `(${of}.kinds & ${PARTIAL}) ${status === 'ok' ? '=' : '<>'} 0`,
    skill === undefined ? null : `instr(${of}.skills, char(10) || ?5 || char(10)) > 0`,
    min_duration_ms === undefined ? null : `${of}.ended_at - ${of}.${started_at} >= ?6`,
    patterns.includes('*') ? null : coveredBy('?7', `${of}.scope`),
  ]
  return ['true', ...checks.filter((check) => check !== null)].join(' AND ')
}

/** A trace with what it consists of, as far as D1 has it. */
export type FoundTrace = { summary: TraceSummary; events: readonly TraceEvent[]; calls: readonly TraceCall[] }
type PageOf<Item> = { items: Item[]; next_cursor: string | null } & ReturnType<typeof namesOf>

export async function listTraces(db: D1Database, query: TraceQuery): Promise<PageOf<TraceSummary>> {
  const { items, ...rest } = await findTraces(db, query)
  return { items: items.map(({ summary }) => summary), ...rest }
}

/** Traces by their newest matching event, or else call, newest first. */
export async function findTraces(db: D1Database, query: TraceQuery): Promise<PageOf<FoundTrace>> {
  const { patterns, limit } = query
  const gaps = noGaps()
  const packed = await packedPageOf(db, query, gaps)
  const pages = [packed, ...(await Promise.all([pageOf(db, 'events', query), pageOf(db, 'calls', query)]))]
  // A source that stopped before its end has not shown its rows below that place.
  const reached = pages.flatMap(({ next }) => (next === null ? [] : [BigInt(next)]))
  const floor = reached.reduce((highest, next) => (next > highest ? next : highest), -1n)
  const rows = pages
    .flatMap((page) => page.rows)
    .filter(({ key }) => BigInt(key) >= floor)
    .toSorted((one, other) => (BigInt(one.key) < BigInt(other.key) ? 1 : -1))
  // A cursor is a place: events of one place are on one page.
  const end = rows.findIndex(({ key }, index) => index >= limit && key !== rows[index - 1]?.key)
  const shown = end === -1 ? rows : rows.slice(0, end)
  const next_cursor = rows.length > shown.length ? (shown.at(-1)?.key ?? null) : floor === -1n ? null : String(floor)
  const ids = [...new Set(shown.map(({ trace_id }) => trace_id))]
  const [found, called] = await Promise.all([
    eventsOfTraces(db, ids, patterns, { since: startOf(shown), ...gaps }),
    callsOfTraces(db, ids, patterns),
  ])
  const events = Map.groupBy(found, ({ trace_id }) => trace_id)
  const calls = Map.groupBy(called, ({ trace_id }) => trace_id)
  const isListed = (event: TraceEvent) => matches(event, query)
  // The newest event of a trace has its place, also if that is not within the times of the list.
  const isOlder = ({ key }: TraceRow, of: readonly TraceEvent[]) =>
    of.some((event) => BigInt(event.key) > BigInt(key) && matches(event, { ...query, since: undefined, until: undefined }))
  const listed = new Set<string>()
  const items = shown.flatMap((row) => {
    const { trace_id, source } = row
    const of = events.get(trace_id) ?? []
    // A trace with a matching event is listed by that.
    if (listed.has(trace_id) || (source === 'calls' ? of.some(isListed) : isOlder(row, of))) return []
    listed.add(trace_id)
    const parts = { events: of, calls: calls.get(trace_id) ?? [] }
    return summaryOf(trace_id, parts.events, parts.calls).map((summary) => ({ summary, ...parts }))
  })
  return { items, next_cursor, ...namesOf(gaps, patterns) }
}

const DAY_MS = 86_400_000
/** No event of these traces is older, in ms: their ids have times, which seem to be right. */
function startOf(rows: readonly TraceRow[]): number {
  const times = rows.map(({ key, trace_id }) => {
    const time = timeIn(trace_id)
    return time === null || time > msOf(BigInt(key)) ? 0 : time
  })
  return Math.max(0, Math.min(...times) - DAY_MS)
}

/** The same conditions, for an event that was read. */
function matches(event: TraceEvent, { scope, agent, kind, status, skill, since, until, min_duration_ms }: TraceQuery): boolean {
  return (
    (scope === undefined || event.scope === scope) &&
    (agent === undefined || event.agent === agent) &&
    (kind === undefined || (event.kinds & bitOf(kind)) !== 0) &&
    (status === undefined || sources.events.statuses[status].includes(event.status)) &&
    (partialIs[status ?? 'running'] ?? isPartial(event)) === isPartial(event) &&
    (skill === undefined || event.skills.split('\n').includes(skill)) &&
    (since === undefined || event.accepted_at >= Date.parse(since)) &&
    (until === undefined || event.accepted_at < Date.parse(until)) &&
    (min_duration_ms === undefined || (event.ended_at !== null && event.ended_at - event.accepted_at >= min_duration_ms))
  )
}

type TraceRow = { key: string; trace_id: string; source: Source }

/** The packed events that match, as rows. */
async function packedPageOf(db: D1Database, query: TraceQuery, gaps: Gaps): Promise<Page> {
  const { status, patterns, scope, limit } = query
  if (status !== undefined && status !== 'ok' && status !== 'partial') return { rows: [], next: null }
  const { since, before } = boundsOf(query)
  const isWanted = (event: PackedEvent) =>
    covers(patterns, event.scope) && matches(traceEvent(event), { ...query, since: undefined, until: undefined })
  const bounds = { after: BigInt(since) - 1n, before: BigInt(before), rising: false }
  const asked = { patterns, scope, types: undefined, status: undefined, ...bounds, most: limit, isWanted, ...gaps }
  // A trace is listed by its newest event, and the others need no place on the page.
  const { events, reach } = await packedPage(db, { ...asked, oncePer: ({ trace_id }) => trace_id })
  const rows = events.map(({ seq, trace_id }) => ({ key: String(seq), trace_id, source: 'events' as const }))
  return { rows, next: reach === null ? null : String(reach) }
}

/** The lowest place of the list, and the one that it ends before. */
function boundsOf({ since, until, cursor }: TraceQuery): { since: string; before: string } {
  const ends = [cursor, until && seqAt(Date.parse(until))].flatMap((seq) => (seq === undefined ? [] : [BigInt(seq)]))
  return {
    since: since === undefined ? '-1' : seqAt(Date.parse(since)),
    before: ends.length === 0 ? '9223372036854775807' : String(ends.reduce((one, other) => (one < other ? one : other))),
  }
}

type Page = { rows: TraceRow[]; next: string | null }

/** The rows of one source. `next`: where it continues; null at its end. */
async function pageOf(db: D1Database, source: Source, query: TraceQuery): Promise<Page> {
  const { patterns, scope, agent, skill, min_duration_ms, limit, status } = query
  // A call is never partial: no statement, whose plan would read all calls for an empty list.
  if (status !== undefined && sources[source].statuses[status].length === 0) return { rows: [], next: null }
  const { since, before } = boundsOf(query)
  const params = [since, before, scope ?? null, agent ?? null, skill ?? null, min_duration_ms ?? null, JSON.stringify(patterns)]
  const columns = source === 'events' ? COLUMNS : CALL_COLUMNS
  const looked = `SELECT seq, ${columns} FROM ${source} WHERE ${scope === undefined ? 'true' : 'scope = ?3'}
    AND trace_id IS NOT NULL AND seq >= CAST(?1 AS INTEGER) AND seq < CAST(?2 AS INTEGER) ORDER BY seq DESC LIMIT ${MOST_LOOKED_AT}`
  const newer = `SELECT 1 FROM ${source} AS other WHERE ${sources[source].newer} AND other.seq > one.seq AND ${conditions('other', source, query)}`
  const used =
    '?1 IS NOT NULL AND ?2 IS NOT NULL AND (?3 IS NULL OR true) AND (?4 IS NULL OR true) AND (?5 IS NULL OR true) AND (?6 IS NULL OR true) AND ?7 IS NOT NULL'
  // In the order of the inner query: an ORDER BY of its own would read all of it for each page.
  const page = `SELECT CAST(seq AS TEXT) AS key, trace_id, '${source}' AS source FROM (${looked}) AS one
    WHERE ${used} AND ${conditions('one', source, query)} AND NOT EXISTS (${newer}) LIMIT ${limit + 1}`
  const { results: rows } = await db
    .prepare(page)
    .bind(...params)
    .all<TraceRow>()
  // A short page is the last one, unless it reached the limit of rows read.
  return { rows, next: rows.length > limit ? (rows.at(-1)?.key ?? null) : await lastLookedAt() }

  async function lastLookedAt(): Promise<string | null> {
    const reach = `SELECT count(*) AS rows, CAST(min(seq) AS TEXT) AS key FROM (${looked}) AS one WHERE ${used}`
    const last = await db
      .prepare(reach)
      .bind(...params)
      .first<{ rows: number; key: string }>()
    if (last?.rows !== MOST_LOOKED_AT) return null
    const bounds = { rising: false, after: BigInt(since) - 1n, before: BigInt(before) }
    return patterns.includes('*') ? last.key : String(roundPlace(BigInt(last.key), bounds) ?? last.key)
  }
}

function summaryOf(trace_id: string, events: readonly TraceEvent[], calls: readonly TraceCall[]): TraceSummary[] {
  if (events.length === 0 && calls.length === 0) return []
  const [first] = events
  const all = [...events.map((event) => ({ ...event, started_at: event.accepted_at })), ...calls]
  const running = all.some(({ status, ended_at }) => ended_at === null || status === 'running')
  const started = Math.min(...all.map(({ started_at }) => started_at))
  const ended = running ? null : Math.max(...all.map(({ ended_at }) => ended_at ?? 0))
  const failed = all.some(({ status }) => ['dead_lettered', 'cancelled', 'error'].includes(status))
  return [
    {
      trace_id,
      scopes: [...new Set(all.map(({ scope }) => scope))].toSorted(),
      agents: [...new Set(all.flatMap(({ agent }) => agent ?? []))].toSorted(),
      status: running ? 'running' : failed ? 'error' : all.some(isPartial) ? 'partial' : 'ok',
      started_at: new Date(started).toISOString(),
      ended_at: isoOrNull(ended),
      duration_ms: ended === null ? null : ended - started,
      events: events.length,
      first_event: first ? { id: first.id, scope: first.scope, type: first.type } : null,
      kinds: kindsIn(all.reduce((bits, { kinds }) => bits | kinds, 0)),
      skills: [...new Set(all.flatMap(({ skills }) => skills.split('\n').filter((id) => id !== '')))].toSorted(),
    },
  ]
}
