import type { Requested } from '../../contract/log-entry.ts'
import type { Event } from '../../core/event.ts'
import { eventStatements, type Backoff } from '../../core/event-statements.ts'
import type { Outcome, OutcomeStatus } from '../../contract/event-record.ts'
import type { Clean } from '../../base/secrets.ts'
import { jsonChunks } from '../../base/byte-length.ts'
import type { Database, ScopeRow } from '../storage/database.ts'
import { insertRows, rowOf, updateRows, type Claimed, type ArrivedEvent, type Stored } from './event-row.ts'
import { storedAsSent } from './sent-ids.ts'
import { eventHead } from '../log/spans.ts'
import { turnToken } from './turn-rows.ts'
import type { Unit } from '../storage/unit.ts'

/** `log_seq` is the log entry with the error's stack. */
export type Failure = Backoff & { error: string; log_seq?: number }
/**
 * `attempts` counts an attempt whose claim was not written. `leaves`: the events leave the context,
 * as all do that are cancelled or dead-lettered.
 */
export type End = { status: OutcomeStatus; outcome: Outcome; error?: string | null; attempts?: 0 | 1; leaves?: boolean }
export type SettledEvent = { seq: number; scope: string; id: string; trace_id: string; attempts: number }
export type Failed = SettledEvent & { status: 'pending' | 'dead_lettered'; due_at: number }

const ADD_TURN = `json_insert(coalesce(turns, '[]'), '$[#]', ?2)`
/** Tokens that only the scope itself may settle. */
const OWN = /^(?:turn|reflex):/

/**
 * The scope's durable EventStore: core's SQL statements in the scope's own transactions (G1, G3).
 */
export class Inbox {
  readonly #database: Database
  readonly #statements = eventStatements()
  /** The last assigned `seq`, even if retention has deleted its event. */
  #last: number
  #open: number

  constructor(database: Database) {
    this.#database = database
    this.#last = Math.max(
      database.first<{ seq: number | null }>('SELECT max(seq) AS seq FROM events')?.seq ?? 0,
      database.read('inbox_floor', 0),
    )
    this.#open = database.first<{ n: number }>(`SELECT count(*) AS n FROM events WHERE status IN ('pending', 'processing')`)?.n ?? 0
  }

  get last(): number {
    return this.#last
  }

  /** Number of events without an outcome. */
  get open(): number {
    return this.#open
  }

  /** Returns the new events with their `seq`; the others are duplicates (G3). */
  fresh(events: readonly Clean<Event>[]): Stored[] {
    const byId = new Map<string, Clean<Event>>()
    for (const event of events) if (!byId.has(event.id)) byId.set(event.id, event)
    const ids = jsonChunks(Array.from(byId.keys(), (id) => JSON.stringify(id)))
    const known = 'SELECT id FROM events WHERE id IN (SELECT value FROM json_each(?1))'
    for (const chunk of ids) for (const { id } of this.#database.allHidden<{ id: string }>(known, chunk)) byId.delete(id)
    for (const id of storedAsSent(this.#database, Array.from(byId.values())).keys()) byId.delete(id)
    return Array.from(byId.values(), (event, index) => {
      return { seq: this.#last + 1 + index, attempts: 0, event, text: JSON.stringify(event) }
    })
  }

  /** An empty inbox accepts any batch; otherwise one above the limit could never enter. */
  hasRoom(events: readonly Clean<Event>[], limit: number): boolean {
    return this.#open === 0 || this.#open + events.length <= limit || this.#open + this.fresh(events).length <= limit
  }

  /** Stores new events with the filters' results. */
  insert(unit: Unit, judged: readonly ArrivedEvent[]): void {
    // The events are clean, and the scope itself wrote the outcomes.
    for (const chunk of jsonChunks(judged.map(rowOf))) unit.allHidden(insertRows, chunk, unit.now)
    this.#last += judged.length
    this.#open += judged.filter(({ status }) => status === 'pending' || status === 'processing').length
  }

  /** Updates stored events with the filters' results. */
  update(unit: Unit, judged: readonly ArrivedEvent[]): void {
    const rows = judged.map(({ stored: { seq }, status, in_context, outcome, chain_seq }) =>
      JSON.stringify([seq, status, in_context ? 1 : 0, outcome && JSON.stringify(outcome), chain_seq]),
    )
    for (const chunk of jsonChunks(rows)) unit.allHidden(updateRows, chunk, unit.now)
    this.#open -= judged.filter(({ status }) => status !== 'pending' && status !== 'processing').length
  }

  /** Makes an event wait for a turn after the reflex action that held it failed. */
  unhold(unit: Unit, seq: number): void {
    unit.all(
      `UPDATE events SET status = 'pending', due_at = 0, ack_token = NULL, lease_until = NULL WHERE seq = ? AND status = 'processing'`,
      seq,
    )
  }

  /**
   * Due events that were not perceived: a filter failed, or `consumer` was `pull` when they came.
   */
  unperceived(now: number, limit: number): Stored[] {
    return this.#database
      .all(
        `SELECT seq, payload, attempts FROM events WHERE status = 'pending' AND due_at <= ? AND in_context = 0 ORDER BY seq LIMIT ?`,
        now,
        limit,
      )
      .map(toStored)
  }

  claim(unit: Unit, request: { ack_token: string; lease_ms: number; limit: number; types?: readonly string[] | undefined }) {
    return unit
      .run(this.#statements.claim({ ...request, now: unit.now }))
      .map((row) => ({ ...toStored(row), ack_token: String(row['ack_token']) }))
      .sort((left, right) => left.seq - right.seq)
  }

  claimedBy(ack_token: string): number | null {
    if (OWN.test(ack_token)) return null
    const row = this.#database.first<{ seq: number }>(`SELECT seq FROM events WHERE status = 'processing' AND ack_token = ?`, ack_token)
    return row?.seq ?? null
  }

  /** Ends events without an outcome; each gets exactly one (G1). */
  end(unit: Unit, seqs: readonly number[], { status, outcome, error = null, attempts = 0 }: End): SettledEvent[] {
    const rows = unit.allOf<SettledEvent>(
      seqs,
      `UPDATE events SET status = ?2, outcome = ?3, error = ?4, ended_at = ?5, attempts = attempts + ?6, ack_token = NULL, lease_until = NULL, parked = NULL, parked_at = NULL
        WHERE seq IN (SELECT value FROM json_each(?1)) AND status IN ('pending', 'processing') RETURNING seq, scope, id, trace_id, attempts`,
      status,
      JSON.stringify(outcome),
      error,
      unit.now,
      attempts,
    )
    this.#open -= rows.length
    return rows.sort((left, right) => left.seq - right.seq)
  }

  /** Requeues a failed turn's events with backoff, or dead-letters those without attempts left. */
  fail(unit: Unit, stored: readonly Claimed[], failure: Failure & { turn_id: string }): Failed[] {
    const ack_tokens = stored.map(({ seq }) => turnToken(failure.turn_id) + seq)
    const rows = unit.run(this.#statements.nack({ ...failure, ack_tokens }))
    unit.all(
      `UPDATE events SET turns = ${ADD_TURN}, parked = NULL, parked_at = NULL WHERE seq IN (SELECT value FROM json_each(?1))`,
      JSON.stringify(rows.map((row) => row['seq'])),
      failure.turn_id,
    )
    return this.#failed(unit, rows, failure)
  }

  /** Counts an attempt after a filter threw. The events were not claimed. */
  failPerceiving(unit: Unit, seqs: readonly number[], failure: Failure): Failed[] {
    const claimed = unit.all<{ ack_token: string }>(
      `UPDATE events SET status = 'processing', attempts = attempts + 1, ack_token = 'perceive:' || seq
        WHERE seq IN (SELECT value FROM json_each(?1)) RETURNING ack_token`,
      JSON.stringify(seqs),
    )
    return this.#failed(unit, unit.run(this.#statements.nack({ ...failure, ack_tokens: claimed.map((row) => row.ack_token) })), failure)
  }

  /** Refuses the scope's own tokens, which are readable in the log. */
  nack(unit: Unit, ack_token: string, failure: Failure): Failed[] {
    if (OWN.test(ack_token)) return []
    return this.#failed(unit, unit.run(this.#statements.nack({ ...failure, ack_tokens: [ack_token] })), failure)
  }

  expire(unit: Unit, backoff: Backoff): Failed[] {
    const statement = this.#statements.expire(backoff)
    return this.#failed(unit, unit.run(statement), { error: String(statement.params[1]) })
  }

  waiting(): number[] {
    return this.#database.all<{ seq: number }>(`SELECT seq FROM events WHERE status = 'pending' AND in_context = 1`).map(({ seq }) => seq)
  }

  reopen(unit: Unit, ids: readonly string[]): (SettledEvent & { parent_id: string | null })[] {
    const rows = unit.allOf<SettledEvent & { parent_id: string | null }>(
      ids,
      `UPDATE events SET status = 'pending', attempts = 0, interruptions = 0, error = NULL, outcome = NULL, due_at = 0, ended_at = NULL
        WHERE id IN (SELECT value FROM json_each(?1)) AND status = 'dead_lettered' RETURNING seq, scope, id, trace_id, attempts,
          payload ->> '$.meta.parent_id' AS parent_id`,
    )
    this.#open += rows.length
    return rows
  }

  discard(unit: Unit, ids: readonly string[], by: Requested): SettledEvent[] {
    const rows = unit.allOf<SettledEvent>(
      ids,
      `UPDATE events SET outcome = json_set(coalesce(outcome, '{"by":"failure","reason":"unknown"}'), '$.discarded', json('true'))
        WHERE id IN (SELECT value FROM json_each(?1)) AND status = 'dead_lettered' RETURNING seq, scope, id, trace_id, attempts`,
    )
    unit.log(...rows.map((row) => ({ ...eventHead(row), kind: 'event-discarded', ...by }) as const))
    return rows
  }

  #failed(unit: Unit, rows: ScopeRow[], { error, log_seq }: { error: string; log_seq?: number }): Failed[] {
    const known = new Map(
      unit
        .all<{ seq: number; scope: string; trace_id: string }>(
          'SELECT seq, scope, trace_id FROM events WHERE seq IN (SELECT value FROM json_each(?))',
          JSON.stringify(rows.map((row) => row['seq'])),
        )
        .map(({ seq, ...known }) => [seq, known]),
    )
    const failed = rows.map((row) => ({ ...(row as unknown as Failed), ...known.get(Number(row['seq'])) }))
    const dead = failed.filter(({ status }) => status === 'dead_lettered').map(({ seq }) => seq)
    this.#open -= dead.length
    if (dead.length > 0) {
      unit.all(
        'UPDATE events SET outcome = ?2 WHERE seq IN (SELECT value FROM json_each(?1))',
        JSON.stringify(dead),
        JSON.stringify({ by: 'failure', reason: error, ...(log_seq !== undefined && { log_seq }) } satisfies Outcome),
      )
    }
    return failed.sort((left, right) => left.seq - right.seq)
  }
}

const toStored = (row: ScopeRow): Stored => ({
  seq: Number(row['seq']),
  event: JSON.parse(String(row['payload'])) as Event,
  attempts: Number(row['attempts']),
  text: String(row['payload']),
})
