import type { Event } from '../../core/event.ts'
import type { Outcome, OutcomeStatus } from '../../contract/event-record.ts'

export type Claimed = { seq: number; event: Event; attempts: number }
/** `text` is the event's JSON, as stored. */
export type Stored = Claimed & { text: string }
/** A new event as stored: pending, or already ended by the filters. */
export type ArrivedEvent = {
  stored: Stored
  status: 'pending' | 'processing' | OutcomeStatus
  in_context: boolean
  outcome: Outcome | null
  chain_seq: number | null
}

/**
 * Parameters: a JSON array of rows from `rowOf`, and the time of acceptance. Materialized, since
 * SQLite would extract the event's JSON again for each of its columns.
 */
export const insertRows = `INSERT INTO events (seq, id, scope, type, source, timestamp, trace_id, payload, status, in_context, outcome, accepted_at, ended_at, ack_token, lease_until, chain_seq)
  WITH row AS MATERIALIZED (SELECT value, value->5 AS event FROM json_each(?1))
  SELECT value->>0, event->>'id', event->>'scope', event->>'type', event->>'source', event->>'timestamp', event->>'$.meta.trace_id', event, value->>1, value->>2,
    value->>3, ?2, CASE WHEN value->>1 NOT IN ('pending', 'processing') THEN ?2 END, CASE value->>1 WHEN 'processing' THEN 'reflex:' || (value->>0) END,
    CASE value->>1 WHEN 'processing' THEN ${Number.MAX_SAFE_INTEGER} END, value->>4 FROM row`

/** Parameters: a JSON array of `[seq, status, in_context, outcome, chain_seq]`, and the time. */
export const updateRows = `UPDATE events SET status = row.value->>1, in_context = row.value->>2, outcome = row.value->>3,
    chain_seq = coalesce(row.value->>4, chain_seq), ended_at = CASE WHEN row.value->>1 NOT IN ('pending', 'processing') THEN ?2 END,
    ack_token = CASE row.value->>1 WHEN 'processing' THEN 'reflex:' || seq END, parked = NULL, parked_at = NULL,
    lease_until = CASE row.value->>1 WHEN 'processing' THEN ${Number.MAX_SAFE_INTEGER} END
  FROM json_each(?1) AS row WHERE events.seq = row.value->>0`

export const rowOf = ({ stored: { seq, text }, status, in_context, outcome, chain_seq }: ArrivedEvent): string =>
  `[${seq},${JSON.stringify(status)},${in_context ? 1 : 0},${outcome ? JSON.stringify(JSON.stringify(outcome)) : null},${chain_seq},${text}]`
