import type { Alarm } from '../../kernel/alarm.ts'
import type { Event } from '../../core/event.ts'
import type { EventRecord, EventStatus, Outcome } from '../../contract/event-record.ts'
import type { Depth } from '../../contract/scope.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Database, ScopeRow } from '../../kernel/unit.ts'
import { storedAsSent, UNTIL_SETTLED } from './inbox.ts'

/** The state of an event without an outcome; times in ms. */
export type OpenEvent = {
  status: string
  token: string
  due_at: number
  lease_until: number | null
  parked: string | null
  parked_at: number | null
  accepted_at: number
  attempts: number
  error: string | null
}
type StoredRecord = Omit<EventRecord, 'waiting'> & { open: OpenEvent | null }

const NEXT_DUE = `SELECT (SELECT min(due_at) FROM events WHERE status = 'pending' AND due_at > 0 AND due_at > ?) AS retry,
  (SELECT min(lease_until) FROM events WHERE status = 'processing') AS lease`

/** Read-only queries on the inbox. */
export class InboxView {
  readonly #database: Database

  constructor(database: Database, alarm: Alarm, inbox: { readonly open: number }) {
    this.#database = database
    alarm.source((since) => (inbox.open === 0 ? null : this.#nextDue(since)))
  }

  record(id: string): StoredRecord | null {
    const row = this.#database.first('SELECT * FROM events WHERE id = ?', id)
    if (!row) return null
    const ended = row['ended_at']
    return {
      event: JSON.parse(String(row['payload'])) as Event,
      status: String(row['status']) as EventStatus,
      attempts: Number(row['attempts']),
      error: row['error'] === null ? null : String(row['error']),
      outcome: row['outcome'] === null ? null : (JSON.parse(String(row['outcome'])) as Outcome),
      accepted_at: new Date(Number(row['accepted_at'])).toISOString(),
      ended_at: ended === null ? null : new Date(Number(ended)).toISOString(),
      open: ended === null ? openOf(row) : null,
    }
  }

  /** Returns the ids of events without an outcome. */
  open(ids: readonly string[]): Set<string> {
    const open = this.#database.allOf<{ id: string }>(
      ids,
      `SELECT id FROM events WHERE id IN (SELECT value FROM json_each(?1)) AND status IN ('pending', 'processing')`,
    )
    return new Set(open.map(({ id }) => id))
  }

  depth(now: number): Depth {
    const pending = this.#count(`status = 'pending'`)
    const delayed = this.#count(`status = 'pending' AND due_at > ${now}`)
    return { pending: pending - delayed, delayed, processing: this.#count(`status = 'processing'`) }
  }

  /** Time of the next retry or lease expiry. */
  #nextDue(now: number): number | null {
    const { retry = null, lease = null } = this.#database.first<{ retry: number | null; lease: number | null }>(NEXT_DUE, now) ?? {}
    const at = Math.min(retry ?? UNTIL_SETTLED, lease ?? UNTIL_SETTLED)
    return at === UNTIL_SETTLED ? null : at
  }

  /** First and last acceptance of the pending events, for the debounce. */
  window(now: number): { first: number; last: number } | null {
    const row = this.#database.first<{ first: number | null; last: number | null }>(
      `SELECT min(accepted_at) AS first, max(accepted_at) AS last FROM events WHERE status = 'pending' AND in_context = 1 AND due_at <= ?`,
      now,
    )
    return row?.first === null || row?.last === null || !row ? null : { first: row.first, last: row.last }
  }

  /** Ids of turns that considered these events. */
  earlierTurns(seqs: readonly number[]): string[] {
    const rows = this.#database.allOf<{ turn_id: string }>(
      seqs,
      `SELECT DISTINCT turn.value AS turn_id FROM events, json_each(events.turns) AS turn
        WHERE seq IN (SELECT value FROM json_each(?1)) AND turns IS NOT NULL`,
    )
    return Array.from(new Set(rows.map(({ turn_id }) => turn_id)))
  }

  /** Returns the events that were interrupted at least `times` times. */
  interrupted(seqs: readonly number[], times: number): number[] {
    return this.#database
      .allOf<{ seq: number }>(seqs, 'SELECT seq FROM events WHERE seq IN (SELECT value FROM json_each(?1)) AND interruptions >= ?2', times)
      .map(({ seq }) => seq)
  }

  /** A duplicate is answered with the trace of the first, which is the one in the log. */
  receipts(events: readonly Event[], fresh: Set<string>): Extract<Accepted, { ok: true }>['receipts'] {
    const ids = fresh.size < events.length ? events.map(({ id }) => id) : []
    const sql = `SELECT id, payload ->> '$.meta.trace_id' AS trace_id FROM events WHERE id IN (SELECT value FROM json_each(?1))`
    const rows = ids.length === 0 ? [] : this.#database.allOf<{ id: string; trace_id: string }>(ids, sql)
    const traces = new Map(rows.map(({ id, trace_id }) => [id, trace_id]))
    const older = ids.length === 0 ? null : storedAsSent(this.#database, events)
    return events.map(({ id, scope, meta: { trace_id, sent_id } }) => {
      const first = traces.has(id) ? undefined : older?.get(id)
      return {
        id: first?.id ?? id,
        ...(sent_id !== undefined && { sent_id }),
        scope,
        trace_id: first?.trace_id ?? traces.get(id) ?? trace_id,
        status: fresh.delete(id) ? 'accepted' : 'duplicate',
      }
    })
  }

  /** The events of `ids` that this sender sent. */
  sentBy(ids: readonly string[], sender: string): string[] {
    const sql = `SELECT id FROM events WHERE id IN (SELECT value FROM json_each(?1)) AND payload ->> '$.meta.sender' = ?2`
    return this.#database.allOf<{ id: string }>(ids, sql, sender).map(({ id }) => id)
  }

  #count(condition: string): number {
    return this.#database.first<{ n: number }>(`SELECT count(*) AS n FROM events WHERE ${condition}`)?.n ?? 0
  }
}

function openOf(row: ScopeRow): OpenEvent {
  const number = (name: string) => (row[name] === null ? null : Number(row[name]))
  const text = (name: string) => (row[name] === null ? null : String(row[name]))
  return {
    status: String(row['status']),
    token: text('ack_token') ?? '',
    due_at: Number(row['due_at']),
    lease_until: number('lease_until'),
    parked: text('parked'),
    parked_at: number('parked_at'),
    accepted_at: Number(row['accepted_at']),
    attempts: Number(row['attempts']),
    error: text('error'),
  }
}
