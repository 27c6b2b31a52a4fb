import { jsonChunks } from '../../base/json.ts'
import { seqAt } from '../queued.ts'

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
