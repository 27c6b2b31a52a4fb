import { bitOf, kindsIn, type SpanKind, type TraceStatus, type TraceSummary } from '../contract/reports/trace.ts'
import { coveredBy } from './events.ts'
import { seqAt } from './queued.ts'

/** A trace id that is made with its event begins with the time that the event is filed under. */
const NEAR_MS = 20

const timeIn = (trace_id: string): number | null => (trace_id[12] === '7' ? Number.parseInt(trace_id.slice(0, 12), 16) : null)

type Filed = { trace_id: string; parent_id: string | null; timestamp: string; accepted_at: number }

/** The key by which the event's trace is indexed; null if the time in its id finds it. */
export function traceKey({ trace_id, parent_id, timestamp, accepted_at }: Filed): string | null {
  const time = timeIn(trace_id)
  const filed = Math.min(Date.parse(timestamp), accepted_at)
  return parent_id === null && time !== null && Math.abs(filed - time) < NEAR_MS ? null : trace_id
}

/** Times of a trace's events that its id finds, as `seq`. */
function rangeOf(trace_id: string): [string, string] {
  const time = timeIn(trace_id)
  return time === null ? ['0', '0'] : [seqAt(time - NEAR_MS), seqAt(time + NEAR_MS)]
}

export type TraceEvent = {
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

/** The events of these traces that the caller may see, oldest first. */
export async function eventsOfTraces(db: D1Database, trace_ids: readonly string[], patterns: readonly string[]): Promise<TraceEvent[]> {
  const asked = JSON.stringify(trace_ids.map((trace_id) => [trace_id, ...rangeOf(trace_id)]))
  const covered = patterns.includes('*') ? '?2 IS NOT NULL' : coveredBy('?2')
  const sql = `SELECT * FROM (
      SELECT seq, ${COLUMNS} FROM json_each(?1) AS asked CROSS JOIN events ON trace_key = asked.value->>0
      UNION ALL
      SELECT seq, ${COLUMNS} FROM json_each(?1) AS asked CROSS JOIN events
        ON seq >= CAST(asked.value->>1 AS INTEGER) AND seq < CAST(asked.value->>2 AS INTEGER) AND trace_id = asked.value->>0 AND trace_key IS NULL
    ) WHERE ${covered} ORDER BY seq LIMIT ${MOST_EVENTS}`
  const { results } = await db.prepare(sql).bind(asked, JSON.stringify(patterns)).all<TraceEvent>()
  return results
}

export type TraceQuery = {
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
const STATUSES: Record<TraceStatus, string> = {
  running: `'pending', 'processing'`,
  ok: `'completed', 'ignored'`,
  error: `'dead_lettered', 'cancelled'`,
}

/** Conditions on an event, in the table or alias `of`. Unused parameters are named all the same. */
function conditions(of: string, { patterns, scope, agent, kind, status, skill, min_duration_ms }: TraceQuery): string {
  const checks = [
    scope === undefined ? null : `${of}.scope = ?3`,
    agent === undefined ? null : `${of}.agent = ?4`,
    kind === undefined ? null : `(${of}.kinds & ${bitOf(kind)}) <> 0`,
    status === undefined ? null : `${of}.status IN (${STATUSES[status]})`,
    skill === undefined ? null : `instr(${of}.skills, char(10) || ?5 || char(10)) > 0`,
    min_duration_ms === undefined ? null : `${of}.ended_at - ${of}.accepted_at >= ?6`,
    patterns.includes('*') ? null : coveredBy('?7', `${of}.scope`),
  ]
  return ['true', ...checks.filter((check) => check !== null)].join(' AND ')
}

/** Traces by their newest matching event, newest first. */
export async function listTraces(db: D1Database, query: TraceQuery): Promise<{ items: TraceSummary[]; next_cursor: string | null }> {
  const { patterns, scope, agent, skill, since, until, min_duration_ms, cursor, limit } = query
  const until_seq = until === undefined ? null : seqAt(Date.parse(until))
  const before = [cursor, until_seq].flatMap((seq) => (seq === undefined || seq === null ? [] : [BigInt(seq)]))
  const params = [
    since === undefined ? '-1' : seqAt(Date.parse(since)),
    before.length === 0 ? '9223372036854775807' : String(before.reduce((one, other) => (one < other ? one : other))),
    scope ?? null,
    agent ?? null,
    skill ?? null,
    min_duration_ms ?? null,
    JSON.stringify(patterns),
  ]
  const looked = `SELECT seq, ${COLUMNS} FROM events WHERE ${scope === undefined ? 'true' : 'scope = ?3'}
    AND trace_id IS NOT NULL AND seq >= CAST(?1 AS INTEGER) AND seq < CAST(?2 AS INTEGER) ORDER BY seq DESC LIMIT ${MOST_LOOKED_AT}`
  const newer = `SELECT 1 FROM events AS other WHERE other.trace_key = one.trace_id AND other.seq > one.seq AND ${conditions('other', query)}`
  const used =
    '?1 IS NOT NULL AND ?2 IS NOT NULL AND (?3 IS NULL OR true) AND (?4 IS NULL OR true) AND (?5 IS NULL OR true) AND (?6 IS NULL OR true) AND ?7 IS NOT NULL'
  // In the order of the inner query: an ORDER BY of its own would read all of it for each page.
  const page = `SELECT CAST(seq AS TEXT) AS key, trace_id FROM (${looked}) AS one
    WHERE ${used} AND ${conditions('one', query)} AND NOT EXISTS (${newer}) LIMIT ${limit + 1}`
  const { results: found } = await db
    .prepare(page)
    .bind(...params)
    .all<{ key: string; trace_id: string }>()
  const rows = found.slice(0, limit)
  // A short page is the last one, unless it reached the limit of rows read.
  const next_cursor = found.length > limit ? (rows.at(-1)?.key ?? null) : await lastLookedAt()
  const ids = [...new Set(rows.map(({ trace_id }) => trace_id))]
  const events = Map.groupBy(await eventsOfTraces(db, ids, patterns), ({ trace_id }) => trace_id)
  return { items: ids.flatMap((trace_id) => summaryOf(trace_id, events.get(trace_id) ?? [])), next_cursor }

  async function lastLookedAt(): Promise<string | null> {
    const reach = `SELECT count(*) AS rows, CAST(min(seq) AS TEXT) AS key FROM (${looked}) AS one WHERE ${used}`
    const last = await db
      .prepare(reach)
      .bind(...params)
      .first<{ rows: number; key: string }>()
    return last?.rows === MOST_LOOKED_AT ? last.key : null
  }
}

function summaryOf(trace_id: string, events: readonly TraceEvent[]): TraceSummary[] {
  const [first] = events
  if (!first) return []
  const running = events.some(({ ended_at }) => ended_at === null)
  const started = Math.min(...events.map(({ accepted_at }) => accepted_at))
  const ended = running ? null : Math.max(...events.map(({ ended_at }) => ended_at ?? 0))
  const failed = events.some(({ status }) => status === 'dead_lettered' || status === 'cancelled')
  return [
    {
      trace_id,
      scopes: [...new Set(events.map(({ scope }) => scope))].toSorted(),
      agents: [...new Set(events.flatMap(({ agent }) => agent ?? []))].toSorted(),
      status: running ? 'running' : failed ? 'error' : 'ok',
      started_at: new Date(started).toISOString(),
      ended_at: ended === null ? null : new Date(ended).toISOString(),
      duration_ms: ended === null ? null : ended - started,
      events: events.length,
      first_event: { id: first.id, scope: first.scope, type: first.type },
      kinds: kindsIn(events.reduce((bits, { kinds }) => bits | kinds, 0)),
      skills: [...new Set(events.flatMap(({ skills }) => skills.split('\n').filter((id) => id !== '')))].toSorted(),
    },
  ]
}
