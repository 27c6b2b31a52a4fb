import { jsonChunks } from '../protocol/json-chunks.ts'

/** One event's state as its scope reports it. Times in ms. */
export type Report = {
  id: string
  scope: string
  type: string
  source: string
  timestamp: string
  trace_id: string
  payload: string
  status: string
  attempts: number
  error: string | null
  accepted_at: number
  ended_at: number | null
  revision: number
  discarded: boolean
}
export type ScopeReport = { scope: string; agent: string; open: number; wake_at: number | null; updated_at: number }

/** Writes what a scope's outbox holds into D1, in one batch. Repeated or late reports change nothing: a revision only grows. */
export async function tell(db: D1Database, reports: readonly Report[], scope: ScopeReport): Promise<void> {
  // The payload is JSON already: it goes in as it is, not as text within text.
  const chunks = jsonChunks(reports.map(({ payload, ...report }) => `[${JSON.stringify(report)},${payload}]`))
  const dead = reports.filter(({ status }) => status === 'dead_lettered')
  const statements = chunks.map((chunk) => db.prepare(UPSERT_EVENTS).bind(chunk))
  for (const chunk of jsonChunks(dead.map((report) => JSON.stringify({ ...report, dead_letter_id: crypto.randomUUID() })))) {
    statements.push(db.prepare(UPSERT_DEAD_LETTERS).bind(chunk))
  }
  const alive = JSON.stringify(reports.filter((report) => report.status !== 'dead_lettered' || report.discarded).map(({ id }) => id))
  statements.push(db.prepare(DELETE_DEAD_LETTERS).bind(scope.scope, alive))
  statements.push(db.prepare(UPSERT_SCOPE).bind(scope.scope, scope.agent, scope.open, scope.wake_at, scope.updated_at))
  await db.batch(statements)
}

const UPSERT_EVENTS = `INSERT INTO events
    (id, scope, type, source, timestamp, trace_id, payload, status, attempts, error, accepted_at, ended_at, revision)
  SELECT report->>'id', report->>'scope', report->>'type', report->>'source', report->>'timestamp', report->>'trace_id', payload, report->>'status',
    report->>'attempts', report->>'error', report->>'accepted_at', report->>'ended_at', report->>'revision'
  FROM (SELECT value->0 AS report, value->1 AS payload FROM json_each(?1)) WHERE true
  ON CONFLICT (scope, id) DO UPDATE SET status = excluded.status, attempts = excluded.attempts, error = excluded.error, accepted_at = excluded.accepted_at,
    ended_at = excluded.ended_at, revision = excluded.revision, queued_at = NULL
  WHERE excluded.revision > events.revision`

const UPSERT_DEAD_LETTERS = `INSERT INTO dead_letters (id, origin, scope, event_id, type, error, attempts, payload, dead_lettered_at)
  SELECT value->>'dead_letter_id', 'scope', value->>'scope', value->>'id', value->>'type', coalesce(value->>'error', 'unknown'), value->>'attempts',
    value->>'payload', value->>'ended_at' FROM json_each(?1) WHERE NOT value->>'discarded'
  ON CONFLICT (scope, event_id) DO UPDATE SET origin = 'scope', error = excluded.error, attempts = excluded.attempts,
    dead_lettered_at = excluded.dead_lettered_at`

const DELETE_DEAD_LETTERS = `DELETE FROM dead_letters WHERE scope = ?1 AND event_id IN (SELECT value FROM json_each(?2))`

const UPSERT_SCOPE = `INSERT INTO scopes (scope, agent, open, wake_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT (scope) DO UPDATE SET agent = ?2, open = ?3, wake_at = ?4, updated_at = ?5 WHERE ?5 >= updated_at`
