import type { Event } from './event.ts'

/** SQL with parameters, for D1 and SQLite. A span's `also` is a further condition on `?8`. */
export type Statement = { sql: string; params: (string | number | null)[] }
type Which = { types?: readonly string[] | undefined; scope?: string | undefined }
export type Claim = Which & { ack_token: string; now: number; lease_ms: number; limit: number }
/** `jitter` in [0, 1) spreads the retries; the delay doubles with each attempt. */
export type Backoff = { max_attempts: number; backoff_ms?: number; max_backoff_ms?: number; now: number; jitter: number }
type Failure = Backoff & { ack_tokens: readonly string[]; error: string }
export type StatementSpan = Which & { start: string; end?: string | undefined; also?: { sql: string; param: string } | undefined }
/** The first rows of `seq, at, bytes` that fit a page of 4 MB. Their payloads are not read. */
const fitting = (rows: string): string => `SELECT seq FROM (SELECT seq, sum(bytes) OVER (ORDER BY at, seq) - bytes AS before
  FROM (${rows})) WHERE before < 4000000`

/** The columns that an EventStore needs. `seq` is the order of acceptance; times are in ms. */
export const eventTable = (table = 'events'): string[] => [
  `CREATE TABLE IF NOT EXISTS ${table} (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, scope TEXT NOT NULL, type TEXT NOT NULL,
    source TEXT NOT NULL, timestamp TEXT NOT NULL, trace_id TEXT NOT NULL, payload TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT, due_at INTEGER NOT NULL DEFAULT 0, lease_until INTEGER, ack_token TEXT, accepted_at INTEGER NOT NULL, ended_at INTEGER, UNIQUE (scope, id))`,
  `CREATE INDEX IF NOT EXISTS ${table}_claim ON ${table} (seq, due_at) WHERE status = 'pending'`,
  `CREATE INDEX IF NOT EXISTS ${table}_lease ON ${table} (ack_token, lease_until) WHERE status = 'processing'`,
]

/** `alsoSet` is appended to every UPDATE, for example `, revision = revision + 1`. */
export function eventStatements(table = 'events', alsoSet = '') {
  const fail = (which: string, { ack_tokens, error, now, max_attempts, jitter, ...backoff }: Failure): Statement => ({
    sql: `UPDATE ${table} SET status = CASE WHEN attempts >= ?4 THEN 'dead_lettered' ELSE 'pending' END, error = ?2,
      due_at = CASE WHEN attempts >= ?4 THEN 0 ELSE ?3 + CAST(min(?7, ?6 << min(attempts - 1, 20)) * (1 + ?5) / 2 AS INTEGER) END,
      ended_at = CASE WHEN attempts >= ?4 THEN ?3 END, ack_token = NULL, lease_until = NULL${alsoSet}
      WHERE status = 'processing' AND ${which} RETURNING seq, id, status, attempts, due_at`,
    params: [JSON.stringify(ack_tokens), error, now, max_attempts, jitter, backoff.backoff_ms ?? 1000, backoff.max_backoff_ms ?? 300_000],
  })
  return {
    /** Inserts new events. Duplicates are not returned. */
    publish: (events: readonly Event[], now: number, status = 'pending'): Statement => ({
      sql: `INSERT INTO ${table} (id, scope, type, source, timestamp, trace_id, payload, status, accepted_at)
        SELECT value->>'id', value->>'scope', value->>'type', value->>'source', value->>'timestamp', value->>'$.meta.trace_id', value, ?2, ?3
        FROM json_each(?1) WHERE true ON CONFLICT (scope, id) DO NOTHING RETURNING seq, scope, id`,
      params: [JSON.stringify(events), status, now],
    }),
    claim: ({ ack_token, now, lease_ms, limit, types, scope }: Claim): Statement => ({
      sql: `UPDATE ${table} SET status = 'processing', attempts = attempts + 1, ack_token = ?1 || seq, lease_until = ?2${alsoSet}
        WHERE seq IN (${fitting(`SELECT seq, 0 AS at, octet_length(payload) AS bytes FROM ${table} WHERE status = 'pending' AND due_at <= ?3
          AND (?5 IS NULL OR type IN (SELECT value FROM json_each(?5))) AND (?6 IS NULL OR scope = ?6) ORDER BY seq LIMIT ?4`)})
        RETURNING seq, payload, attempts, ack_token`,
      params: [ack_token, now + lease_ms, now, limit, types ? JSON.stringify(types) : null, scope ?? null],
    }),
    ack: (ack_tokens: readonly string[], now: number): Statement => ({
      sql: `UPDATE ${table} SET status = 'completed', error = NULL, ended_at = ?2, ack_token = NULL, lease_until = NULL${alsoSet}
        WHERE status = 'processing' AND ack_token IN (SELECT value FROM json_each(?1)) RETURNING seq, id, status, attempts`,
      params: [JSON.stringify(ack_tokens), now],
    }),
    nack: (failure: Failure): Statement => fail('ack_token IN (SELECT value FROM json_each(?1))', failure),
    /** Requeues events whose lease expired. The attempt counts. */
    expire: (backoff: Backoff) => fail(`ack_token > '' AND lease_until <= ?3`, { ...backoff, ack_tokens: [], error: 'the lease ran out' }),
    replay: ({ start, end, types, scope, also }: StatementSpan, after: { timestamp: string; seq: number }, limit: number): Statement => ({
      sql: `SELECT seq, timestamp, payload FROM ${table} WHERE seq IN (${fitting(`SELECT seq, timestamp AS at, octet_length(payload) AS bytes
        FROM ${table} WHERE timestamp >= ?1 AND timestamp < ?2 AND (timestamp, seq) > (?3, ?4) AND (?5 IS NULL OR scope = ?5)
        AND (?6 = 'null' OR type IN (SELECT value FROM json_each(?6))) AND ${also?.sql ?? '?8 IS NULL'} ORDER BY timestamp, seq LIMIT ?7`)}) ORDER BY timestamp, seq`,
      params: [start, end ?? ':', after.timestamp, after.seq, scope ?? null, JSON.stringify(types ?? null), limit, also?.param ?? null],
    }),
  }
}
