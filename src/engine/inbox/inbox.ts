import type { Requested } from '../../contract/log-entry.ts'
import { type Event, randomHex } from '../../core/event.ts'
import { eventStatements, type Backoff } from '../../core/event-statements.ts'
import type { Outcome, OutcomeStatus } from '../../contract/event-record.ts'
import type { Clean } from '../../base/secrets.ts'
import { jsonHash } from '../../base/hash.ts'
import { byteLength, jsonChunks } from '../../base/json.ts'
import type { Database, ScopeRow, Unit } from '../../kernel/unit.ts'
import { eventHead } from '../log/spans.ts'
import type { ReactionDecision, Fire } from '../../reflexes/decide.ts'

/** `log_seq` is the log entry with the error's stack. */
export type Failure = Backoff & { error: string; log_seq?: number }
/**
 * `attempts` counts an attempt whose claim was not written. `leaves`: the events leave the context,
 * as all do that are cancelled or dead-lettered.
 */
export type End = { status: OutcomeStatus; outcome: Outcome; error?: string | null; attempts?: 0 | 1; leaves?: boolean }
export type SettledEvent = { seq: number; scope: string; id: string; trace_id: string; attempts: number }
export type Failed = SettledEvent & { status: 'pending' | 'dead_lettered'; due_at: number }

/** Each half reads its partial index: a wake costs the same however many events are kept. */
const COUNT_OPEN = `SELECT (SELECT count(*) FROM events WHERE status = 'pending') + (SELECT count(*) FROM events WHERE status = 'processing') AS n`
const ADD_TURN = `json_insert(coalesce(turns, '[]'), '$[#]', ?2)`
/** Tokens that only the scope itself may settle. */
const OWN = /^(?:turn|reflex):/

/** The last assigned `seq`, and the time before which all forgotten events were accepted, in ms. */
const FLOOR = 'inbox_floor'
type Floor = { last: number; before: number }
const SECRET = 'inbox_secret'

/**
 * The scope's durable EventStore: core's SQL statements in the scope's own transactions (G1, G3).
 */
export class Inbox {
  readonly #database: Database
  readonly #statements = eventStatements()
  /** The last assigned `seq`, even if retention has deleted its event. */
  #last: number
  /** Events that were accepted before this time, in ms, may have been forgotten; 0 if none were. */
  forgotten: number
  #open: number
  /** New events that wait in memory for a turn that may end within the task, and their time. */
  #held: { rows: ArrivedEvent[]; at: number } | null = null

  constructor(database: Database) {
    this.#database = database
    const floor = database.read<Floor | number>(FLOOR, 0)
    // An older version kept the number alone.
    const { last, before } = typeof floor === 'number' ? { last: floor, before: floor === 0 ? 0 : Infinity } : floor
    this.#last = Math.max(database.first<{ seq: number | null }>('SELECT max(seq) AS seq FROM events')?.seq ?? 0, last)
    this.forgotten = before
    this.#open = database.first<{ n: number }>(COUNT_OPEN)?.n ?? 0
  }

  get last(): number {
    return this.#last
  }

  /** Their numbers are not assigned again. `before`: they were accepted before this time, in ms. */
  forgets(unit: Unit, before: number): void {
    this.forgotten = Number.isFinite(this.forgotten) ? Math.max(this.forgotten, before) : before
    unit.write(FLOOR, { last: this.#last, before: this.forgotten } satisfies Floor)
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

  /**
   * Gives events that a scope made other ids where somebody has sent those, so that none is taken
   * for a duplicate. A new id is the same each time, and nobody can send it first.
   */
  named(unit: Unit, events: readonly Clean<Event>[]): readonly Clean<Event>[] {
    const ids = events.map(({ id }) => id)
    const sql = 'SELECT id FROM events WHERE sent = 1 AND id IN (SELECT value FROM json_each(?1))'
    const sent = new Set(unit.allOf<{ id: string }>(ids, sql).map(({ id }) => id))
    if (sent.size === 0) return events
    const secret = this.#database.read(SECRET, randomHex(16))
    unit.write(SECRET, secret)
    return events.map((event) =>
      sent.has(event.id) ? { ...event, id: `${event.id.slice(0, 95)}:${jsonHash([secret, event.id], 32)}` } : event,
    )
  }

  /** An empty inbox accepts any batch; otherwise one above the limit could never enter. */
  hasRoom(events: readonly Clean<Event>[], limit: number): boolean {
    return this.#open === 0 || this.#open + events.length <= limit || this.#open + this.fresh(events).length <= limit
  }

  /** Stores new events with the filters' results. */
  insert(unit: Unit, judged: readonly ArrivedEvent[]): void {
    this.#write(judged, unit.now)
    this.#took(judged)
  }

  /**
   * Stores new events with the next statement on them or the next unit, or with the end of a turn,
   * which then writes each once. The caller sees to it that a unit follows within the task.
   */
  hold(unit: Unit, judged: readonly ArrivedEvent[]): void {
    this.#held = { rows: [...(this.#held?.rows ?? []), ...judged], at: unit.now }
    this.#database.held = () => this.#release([])
    this.#took(judged)
  }

  /** True if events wait in memory to be written with the end of a turn. */
  get isHolding(): boolean {
    return this.#held !== null
  }

  #took(judged: readonly ArrivedEvent[]): void {
    this.#last += judged.length
    this.#open += judged.filter(({ status }) => status === 'pending' || status === 'processing').length
  }

  #write(rows: readonly EventRow[], accepted_at: number): void {
    // The events are clean, and the scope itself wrote the outcomes.
    for (const chunk of jsonChunks(rows.map(rowOf))) this.#database.allHidden(insertRows, chunk, accepted_at)
  }

  /** Writes the events that wait in memory, these with how they ended meanwhile. */
  #release(ended: readonly EventRow[]): void {
    const held = this.#held
    this.#held = this.#database.held = null
    if (!held) return
    const bySeq = new Map(ended.map((row) => [row.stored.seq, row]))
    this.#write(
      held.rows.map((row) => bySeq.get(row.stored.seq) ?? row),
      held.at,
    )
  }

  /** The events that a turn takes from memory, as `dueForTurn` reads them; null if none wait. */
  heldForTurn(most: TurnLimit): DueEvent[] | null {
    if (!this.#held) return null
    const waiting = this.#held.rows.filter(({ status, in_context }) => status === 'pending' && in_context)
    const sized = waiting.slice(0, most.events).map(({ stored: { text, ...stored } }) => ({ ...stored, bytes: byteLength(text) }))
    return fitting(sized, most.bytes).map(({ seq, event, attempts }) => ({ seq, event, attempts: attempts + 1, earlier_turns: [] }))
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

  /** Has later turns on an event find the calls of these owners in the journal. */
  remember(unit: Unit, seq: number, owners: readonly string[]): void {
    const all = `SELECT value FROM json_each(coalesce(turns, '[]')) UNION SELECT value FROM json_each(?2)`
    unit.all(`UPDATE events SET turns = (SELECT json_group_array(value) FROM (${all})) WHERE seq = ?1`, seq, JSON.stringify(owners))
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
  end(unit: Unit, seqs: readonly number[], how: End): SettledEvent[] {
    const rows = this.#endHeld(unit, seqs, how) ?? this.#endStored(unit, seqs, how)
    this.#open -= rows.length
    return rows.sort((left, right) => left.seq - right.seq)
  }

  /** Ends events that wait in memory; null if others are to be ended, too. */
  #endHeld(unit: Unit, seqs: readonly number[], { status, outcome, error, attempts: more = 0 }: End): SettledEvent[] | null {
    const waiting = new Map(this.#held?.rows.filter((row) => row.status === 'pending').map((row) => [row.stored.seq, row]))
    const held = seqs.flatMap((seq) => waiting.get(seq) ?? [])
    if (error || held.length === 0 || held.length < seqs.length) return null
    const ended = held.map(({ stored, ...row }): EventRow => {
      return { ...row, stored: { ...stored, attempts: stored.attempts + more }, status, outcome, ended_at: unit.now }
    })
    this.#release(ended)
    return ended.map(({ stored: { seq, attempts, event } }) => ({
      seq,
      scope: event.scope,
      id: event.id,
      trace_id: event.meta.trace_id,
      attempts,
    }))
  }

  #endStored(unit: Unit, seqs: readonly number[], { status, outcome, error = null, attempts = 0 }: End): SettledEvent[] {
    return unit.allOf<SettledEvent>(
      seqs,
      `UPDATE events SET status = ?2, outcome = ?3, error = ?4, ended_at = ?5, attempts = attempts + ?6, ack_token = NULL, lease_until = NULL, parked = NULL, parked_at = NULL
        WHERE seq IN (SELECT value FROM json_each(?1)) AND status IN ('pending', 'processing') RETURNING seq, scope, id, trace_id, attempts`,
      status,
      JSON.stringify(outcome),
      error,
      unit.now,
      attempts,
    )
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

  /** They had left the context: they are perceived again, and join it as new ones do. */
  reopen(unit: Unit, ids: readonly string[]): (SettledEvent & { parent_id: string | null })[] {
    const rows = unit.allOf<SettledEvent & { parent_id: string | null }>(
      ids,
      `UPDATE events SET status = 'pending', attempts = 0, interruptions = 0, error = NULL, outcome = NULL, due_at = 0, ended_at = NULL, in_context = 0
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
  sent: boolean
}
/** `ended_at`: the time of its end, if that is later than its acceptance. */
type EventRow = ArrivedEvent & { ended_at?: number }

/**
 * Parameters: a JSON array of rows from `rowOf`, and the time of acceptance. Materialized, since
 * SQLite would extract the event's JSON again for each of its columns.
 */
const insertRows = `INSERT INTO events (seq, id, scope, type, source, timestamp, trace_id, payload, status, in_context, outcome, accepted_at, ended_at, ack_token, lease_until, chain_seq, attempts, sent)
  WITH row AS MATERIALIZED (SELECT value, value->5 AS event FROM json_each(?1))
  SELECT value->>0, event->>'id', event->>'scope', event->>'type', event->>'source', event->>'timestamp', event->>'$.meta.trace_id', event, value->>1, value->>2,
    value->>3, ?2, CASE WHEN value->>1 NOT IN ('pending', 'processing') THEN coalesce(value->>7, ?2) END, CASE value->>1 WHEN 'processing' THEN 'reflex:' || (value->>0) END,
    CASE value->>1 WHEN 'processing' THEN ${Number.MAX_SAFE_INTEGER} END, value->>4, value->>6, value->>8 FROM row`

/** Parameters: a JSON array of `[seq, status, in_context, outcome, chain_seq]`, and the time. */
const updateRows = `UPDATE events SET status = row.value->>1, in_context = row.value->>2, outcome = row.value->>3,
    chain_seq = coalesce(row.value->>4, chain_seq), ended_at = CASE WHEN row.value->>1 NOT IN ('pending', 'processing') THEN ?2 END,
    ack_token = CASE row.value->>1 WHEN 'processing' THEN 'reflex:' || seq END, parked = NULL, parked_at = NULL,
    lease_until = CASE row.value->>1 WHEN 'processing' THEN ${Number.MAX_SAFE_INTEGER} END
  FROM json_each(?1) AS row WHERE events.seq = row.value->>0`

const rowOf = ({ stored: { seq, text, attempts }, status, in_context, outcome, chain_seq, sent, ended_at }: EventRow): string => {
  const how = `${in_context ? 1 : 0},${outcome ? JSON.stringify(JSON.stringify(outcome)) : null},${chain_seq}`
  return `[${seq},${JSON.stringify(status)},${how},${text},${attempts},${ended_at ?? null},${sent ? 1 : null}]`
}

/** The state of an event after its decision: it waits, an action holds it, or it has ended. */
export function stateAfter(
  decision: ReactionDecision,
  { fired_seq, no_turn, asks }: { fired_seq: number; no_turn: string | null; asks: boolean },
): Pick<ArrivedEvent, 'status' | 'outcome'> {
  const { perceived, acted } = decision
  if (perceived === 'ignored') return { status: 'ignored', outcome: { by: 'filter' } }
  if (asks) return { status: 'processing', outcome: null }
  if (perceived !== 'joined' && perceived !== 'asked') return { status: 'pending', outcome: null }
  if (acted) return stateAfterFire(acted, fired_seq)
  return no_turn === null ? { status: 'pending', outcome: null } : { status: 'completed', outcome: { by: 'perceive', reason: no_turn } }
}

/** True if no reflex answered a request for a decision: a job asks the decision model. */
export const asksModel = ({ perceived, acted }: ReactionDecision): boolean =>
  perceived === 'asked' && (acted === null || acted.action.action_type === 'escalate')

function stateAfterFire({ version, action, permitted, reused }: Fire, log_seq: number): Pick<ArrivedEvent, 'status' | 'outcome'> {
  const outcome: Outcome = { by: 'reflex', reflex_id: version.id, version: version.version, log_seq, ...(reused && { reused }) }
  if (reused) return { status: 'completed', outcome }
  if (action.action_type === 'escalate') return { status: 'pending', outcome: null }
  return permitted.lane ? { status: 'processing', outcome: null } : { status: 'completed', outcome }
}

type First = { id: string; source: string; trace_id: string }

/**
 * Finds CloudEvents that an older version stored under the sender's id alone, by the id that they
 * have now: such an event that is delivered again is a duplicate.
 */
export function storedAsSent(database: Database, events: readonly Event[]): ReadonlyMap<string, First> {
  const sent = events.flatMap(({ id, source, meta }) => (meta.sent_id === undefined ? [] : [{ id, source, sent_id: meta.sent_id }]))
  if (sent.length === 0) return NONE
  const rows = database.allOf<First>(
    sent.map(({ sent_id }) => sent_id),
    'SELECT id, source, trace_id FROM events WHERE id IN (SELECT value FROM json_each(?1))',
  )
  const stored = new Map(rows.map((row) => [row.id, row]))
  return new Map(
    sent.flatMap(({ id, source, sent_id }) => {
      const first = stored.get(sent_id)
      return first?.source === source ? [[id, first] as const] : []
    }),
  )
}

const NONE: ReadonlyMap<string, First> = new Map()

/** The first rows whose events have at most this many bytes together; at least one. */
function fitting<Row extends { bytes: number }>(rows: readonly Row[], most: number): Row[] {
  let size = 0
  const end = rows.findIndex(({ bytes }, index) => (size += bytes) > most && index > 0)
  return rows.slice(0, end === -1 ? rows.length : end)
}

type Remembered = { find: (seq: number) => Event | undefined }
/** An event that waits for a turn, and the turns that considered it without success. */
export type DueEvent = Claimed & { earlier_turns: string[] }
/** The most that one turn considers. */
export type TurnLimit = { events: number; bytes: number }
/** `parked`: the reason for waiting until `due_at`, at most `most_ms` in total. */
/** The resource that a parked event waits for. */
export type ParkedFor = 'budget' | 'model'
type Release = { due_at: number; parked?: { reason: ParkedFor; now: number; most_ms?: number }; interrupted?: boolean }

/** A lease without expiry: a turn's claim ends with the turn or at the object's next start. */
export const UNTIL_SETTLED = Number.MAX_SAFE_INTEGER
/** A turn's claim on an event is this, followed by the event's `seq`. */
const turnToken = (turn_id: string): string => `turn:${turn_id}:`

/** The inbox as turns use it: the events that wait for one, and its claim on them. */
export class TurnRows {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Selects the oldest due events that wait for a turn, at most `most` of them. Reads only events
   * that the memory lacks. Their `attempts` include the turn's.
   */
  dueForTurn(now: number, { most, memory }: { most: TurnLimit; memory: Remembered }): DueEvent[] {
    const sql = `SELECT seq, attempts, turns, octet_length(payload) AS bytes FROM events
      WHERE status = 'pending' AND in_context = 1 AND due_at <= ? ORDER BY seq LIMIT ?`
    const due = this.#database.all<{ seq: number; attempts: number; turns: string | null; bytes: number }>(sql, now, most.events)
    const rows = fitting(due, most.bytes)
    const read = this.#read(rows.map(({ seq }) => seq).filter((seq) => !memory.find(seq)))
    return rows.map(({ seq, attempts, turns }) => ({
      seq,
      attempts: attempts + 1,
      event: memory.find(seq) ?? (JSON.parse(read.get(seq) ?? '') as Event),
      earlier_turns: turns === null ? [] : (JSON.parse(turns) as string[]),
    }))
  }

  /** Claims pending events for a turn. */
  hold(unit: Unit, turn_id: string, seqs: readonly number[]): void {
    unit.allOf(
      seqs,
      `UPDATE events SET status = 'processing', attempts = attempts + 1, ack_token = ?2 || seq, lease_until = ?3
        WHERE seq IN (SELECT value FROM json_each(?1)) AND status = 'pending'`,
      turnToken(turn_id),
      UNTIL_SETTLED,
    )
  }

  nextForTurn(now: number): number | null {
    const due = `SELECT seq FROM events WHERE status = 'pending' AND in_context = 1 AND due_at <= ? ORDER BY seq LIMIT 1`
    return this.#database.first<{ seq: number }>(due, now)?.seq ?? null
  }

  /** Releases a turn's events without counting the attempt. */
  release(unit: Unit, turn_id: string, { due_at, parked, interrupted }: Release): { seq: number }[] {
    return unit.all<{ seq: number }>(
      `UPDATE events SET status = 'pending', attempts = max(0, attempts - 1), due_at = CASE WHEN ?4 THEN ?2 + (1000 << min(interruptions, 8))
          ELSE min(?2, coalesce(CASE WHEN parked = ?3 THEN parked_at END, ?6, ?2) + ?7) END, parked = ?3,
        parked_at = CASE WHEN ?3 IS NULL THEN NULL WHEN parked = ?3 THEN coalesce(parked_at, ?6) ELSE ?6 END,
        interruptions = interruptions + ?4, turns = CASE WHEN EXISTS (SELECT 1 FROM effects WHERE owner = ?5) OR EXISTS (SELECT 1 FROM skill_runs WHERE cause = ?5) THEN json_insert(coalesce(turns, '[]'), '$[#]', ?5) ELSE turns END,
        ack_token = NULL, lease_until = NULL
        WHERE status = 'processing' AND ack_token >= ?1 AND ack_token < ?1 || ':' RETURNING seq`,
      turnToken(turn_id),
      due_at,
      parked?.reason ?? null,
      interrupted ? 1 : 0,
      turn_id,
      parked?.now ?? null,
      parked?.most_ms ?? UNTIL_SETTLED / 2,
    )
  }

  #read(seqs: readonly number[]): Map<number, string> {
    if (seqs.length === 0) return new Map()
    const sql = 'SELECT seq, payload FROM events WHERE seq IN (SELECT value FROM json_each(?1))'
    const rows = this.#database.allOf<{ seq: number; payload: string }>(seqs, sql)
    return new Map(rows.map(({ seq, payload }) => [seq, payload]))
  }
}
