import { jsonChunks } from '../base/json.ts'
import type { Event } from '../core/event.ts'
import { timeOf } from './packs/archived.ts'
import { packedAmong, repeatedAmong } from './packs/find.ts'
import type { PackedEvent } from './packs/format.ts'
import { placesOf } from './packs/rows.ts'
import { packEvents } from './packs/write.ts'
import { insertEvents, nameOf, NEAR_MS, withoutRow } from './queued.ts'
import { scopeStatements, type ScopeReport } from './scope-rows.ts'
import { filedAt, traceKey } from './traces/traces.ts'

/** An event's state as its scope reports it; `payload` is JSON. Times in ms. */
export type Report = {
  id: string
  status: string
  attempts: number
  error: string | null
  /** The stack of the final error, if it has one. */
  stack: string | null
  accepted_at: number
  ended_at: number | null
  revision: number
  discarded: boolean
  payload: string
  trace_id: string
  parent_id: string | null
  timestamp: string
  agent: string
  log_from: number
  kinds: number
  skills: string
  /** The event's number in its scope, if D1 has no earlier state of it: it may be packed. */
  nth?: number | null
  /** Its scope may have forgotten an earlier event of this id. */
  may_repeat?: boolean
}

/** Fewer events go to a pack of several scopes, or to one with the answers of their scope. */
const LEAST_PACKED = 16
/**
 * So many events of a delivery are a pack of their scope. The outcomes of fewer go back with the
 * delivery, and are packed with outcomes of other scopes.
 */
export const LEAST_ALONE = 64
/**
 * `isWritten`: D1 has the scope's row. `has_forgotten`: the scope lacks events that it had.
 * `defer` sends events elsewhere to be packed, or returns false.
 */
type Replication = { isWritten?: boolean; has_forgotten?: boolean; least_packed?: number; defer?: Defer | undefined }
export type Defer = (events: readonly PackedEvent[]) => Promise<boolean>

/**
 * Writes events' states and the scope's row. Stale reports change nothing. Many ordinary events
 * that are new to D1 go there as packs; those that change later get rows, which hide them there.
 */
export async function replicateEvents(
  db: D1Database,
  reports: readonly Report[],
  scope: ScopeReport,
  { isWritten = false, has_forgotten = true, least_packed = LEAST_PACKED, defer }: Replication = {},
): Promise<void> {
  const offered = reports.filter(isOrdinary)
  const isPack = offered.length >= least_packed
  const doubted = has_forgotten ? reports.filter(isDoubted) : []
  const ordinary = (isPack || defer) && doubted.length > 0 ? await unrepeated(db, offered, scope) : offered
  const events = (isPack || defer) && ordinary.length > 0 ? packedOf(ordinary, scope.scope) : []
  const is_sent = !isPack && events.length > 0 && (await defer?.(events)) === true
  const packed = new Set(isPack || is_sent ? ordinary : [])
  const others = packed.size === 0 ? reports : reports.filter((report) => !packed.has(report))
  if (is_sent && others.length === 0 && isWritten) return
  const rows = await withTraits(db, scope, others)
  // The payload is inserted as JSON, not as a string within JSON.
  const repeats = doubted.length === 0 ? [] : jsonChunks(rows.filter(isDoubted).map((row) => JSON.stringify([row.id, row.accepted_at])))
  const statements = [
    ...repeats.map((chunk) => db.prepare(DROP_EARLIER).bind(scope.scope, chunk)),
    ...jsonChunks(rows.map(rowOf)).map((chunk) => db.prepare(UPSERT_EVENTS).bind(chunk)),
  ]
  const dead = reports.filter(({ status, discarded }) => status === 'dead_lettered' && !discarded)
  for (const chunk of jsonChunks(
    dead.map((report) => JSON.stringify({ ...report, scope: scope.scope, dead_letter_id: crypto.randomUUID() })),
  )) {
    statements.push(db.prepare(UPSERT_DEAD_LETTERS).bind(chunk))
  }
  const discarded = reports.flatMap((report) => (report.discarded ? [report.id] : []))
  const gone = jsonChunks(discarded.map((id) => JSON.stringify(id)))
  for (const chunk of gone.length > 0 ? gone : ['[]']) statements.push(db.prepare(DELETE_DEAD_LETTERS).bind(scope.scope, chunk))
  if (!isWritten) statements.push(...scopeStatements(db, [scope]))
  await (isPack ? packEvents(db, events, statements) : db.batch(statements))
}

/** D1 has no earlier state of it. */
const isOrdinary = (report: Report): boolean => (report.nth ?? null) !== null && !report.discarded && mayBePacked(report)

/** The clocks that make ids differ from the scope's by less. */
const SKEW_MS = 86_400_000

/** True if the scope, which forgot what it accepted before that time, may have had this id. */
export const mayRepeat = (id: string, forgotten: number): boolean => (timeOf(id) ?? 0) < forgotten + SKEW_MS

export const isDoubted = ({ may_repeat = false }: { may_repeat?: boolean }): boolean => may_repeat

/** Without those that a pack has from another time: they are rows, which hide them there. */
async function unrepeated(db: D1Database, reports: readonly Report[], { scope }: ScopeReport): Promise<readonly Report[]> {
  const repeated = await repeatedAmong(db, packable(reports.filter(isDoubted), scope))
  return reports.filter(({ id }) => !repeated.has(nameOf({ scope, id })))
}

/** It ended as most do, when it happened. */
export const mayBePacked = (event: Pick<Report, 'status' | 'timestamp' | 'accepted_at' | 'trace_id' | 'parent_id'>): boolean =>
  (event.status === 'completed' || event.status === 'ignored') && Math.abs(Date.parse(event.timestamp) - filedAt(event)) < NEAR_MS

/** The ordinary ones of these events of a scope, for a pack. */
export function packable(reports: readonly Report[], scope: string): PackedEvent[] {
  const ordinary = reports.filter(isOrdinary)
  return ordinary.length === 0 ? [] : packedOf(ordinary, scope)
}

function packedOf(reports: readonly Report[], scope: string): PackedEvent[] {
  const placeOf = placesOf(scope)
  return reports.map((report) => packedAt(placeOf({ filed: filedAt(report), nth: report.nth ?? 0 }), report, scope))
}

function packedAt(seq: bigint, report: Report, scope: string): PackedEvent {
  const { id, status, attempts, error, accepted_at, ended_at, revision, agent, trace_id, log_from, kinds, skills } = report
  const { id: _id, scope: _scope, type, meta, ...payload } = JSON.parse(report.payload) as Event
  const { trace_id: _trace_id, ...others } = meta
  const facts = { status, attempts, error, accepted_at, ended_at, revision, agent, trace_id, log_from, kinds, skills }
  return { seq, id, scope, type, ...facts, payload: { ...payload, meta: others }, ...(report.may_repeat && { may_repeat: true }) }
}

/** An event that was packed, and has changed since, keeps the traits that its pack has. */
async function withTraits(db: D1Database, { scope }: ScopeReport, reports: readonly Report[]): Promise<readonly Report[]> {
  const changed = reports.flatMap(({ id, nth }) => (nth === null ? [{ scope, id }] : []))
  const rowless = await withoutRow(db, changed)
  if (rowless.length === 0) return reports
  const packed = await packedAmong(db, rowless, { since: Math.min(...reports.map(({ accepted_at }) => accepted_at)) })
  return reports.map((report) => {
    const known = packed.get(nameOf({ scope, id: report.id }))
    if (!known) return report
    const skills = known.skills.includes(report.skills) ? known.skills : known.skills + report.skills
    return { ...report, log_from: Math.min(known.log_from, report.log_from), kinds: known.kinds | report.kinds, skills }
  })
}

const rowOf = ({ payload, ...report }: Report): string => {
  const { status, attempts, error, accepted_at, revision, ended_at, agent, log_from, kinds, skills } = report
  const fields = [
    status,
    attempts,
    error,
    accepted_at,
    revision,
    ended_at,
    agent,
    traceKey(report),
    log_from,
    kinds,
    skills,
    filedAt(report),
  ]
  return `[${payload},${JSON.stringify(fields).slice(1)}`
}

const UPSERT_EVENTS = `${insertEvents(`SELECT key AS place, value->0 AS event, value->>1 AS status, value->>2 AS attempts,
    value->>3 AS error, value->>4 AS accepted_at, value->>5 AS revision, value->>6 AS ended_at, value->>7 AS agent, value->>8 AS trace_key,
    value->>9 AS log_from, value->>10 AS kinds, value->>11 AS skills, value->>12 AS filed FROM json_each(?1)`)}
  ON CONFLICT (id, scope) DO UPDATE SET status = excluded.status, attempts = excluded.attempts, error = excluded.error,
    accepted_at = excluded.accepted_at, revision = excluded.revision, ended_at = excluded.ended_at, agent = excluded.agent,
    log_from = min(coalesce(events.log_from, excluded.log_from), excluded.log_from), kinds = events.kinds | excluded.kinds,
    skills = CASE WHEN instr(events.skills, excluded.skills) > 0 THEN events.skills ELSE substr(events.skills || excluded.skills, 1, 4000) END
  WHERE excluded.revision > events.revision`

/** The row of another event of the same id, which its scope has forgotten. */
const DROP_EARLIER = `DELETE FROM events WHERE seq IN (SELECT seq FROM json_each(?2) AS sent
  CROSS JOIN events ON events.id = sent.value->>0 AND events.scope = ?1 AND events.accepted_at <> sent.value->>1)`

const UPSERT_DEAD_LETTERS = `INSERT INTO dead_letters (id, origin, scope, event_id, type, error, stack, attempts, payload, dead_lettered_at)
  SELECT value->>'dead_letter_id', 'scope', value->>'scope', value->>'id', value->>'payload'->>'type', coalesce(value->>'error', 'unknown'), value->>'stack', value->>'attempts',
    value->>'payload', value->>'ended_at' FROM json_each(?1) WHERE true
  ON CONFLICT (scope, event_id) DO UPDATE SET origin = 'scope', error = excluded.error, stack = excluded.stack, attempts = excluded.attempts,
    dead_lettered_at = excluded.dead_lettered_at`

/** Deletes letters of events that have another outcome now, or were discarded. */
const DELETE_DEAD_LETTERS = `DELETE FROM dead_letters WHERE scope = ?1 AND (event_id IN (SELECT value FROM json_each(?2))
  OR (SELECT status FROM events WHERE id = event_id AND scope = ?1) <> 'dead_lettered')`
