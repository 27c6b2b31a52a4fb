import { sql } from 'drizzle-orm'
import { blob, index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'

/**
 * The log of events, replicated from the scopes. `seq` begins with the time at which the event was
 * accepted. A higher `revision` overwrites a lower one.
 */
export const events = sqliteTable(
  'events',
  {
    seq: integer().primaryKey(),
    id: text().notNull(),
    scope: text().notNull(),
    type: text().notNull(),
    status: text().notNull(),
    attempts: integer().notNull().default(0),
    error: text(),
    accepted_at: integer().notNull(),
    revision: integer().notNull().default(0),
    ended_at: integer(),
    agent: text(),
    trace_id: text(),
    /** The event's own time, in ms, where that is another than `seq` says. */
    happened_at: integer(),
    /** The trace, unless its id has the time that `seq` begins with. */
    trace_key: text(),
    /** The first entry of the scope's log that names the event. */
    log_from: integer(),
    /** The kinds of spans that it has led to, as bits, and the ids of skills, one a line. */
    kinds: integer().notNull().default(0),
    skills: text().notNull().default(''),
    payload: text().notNull(),
  },
  (table) => [
    index('events_trace')
      .on(table.trace_key)
      .where(sql`trace_key IS NOT NULL`),
    // By id first, which also finds an event of unknown scope.
    unique('events_id_scope').on(table.id, table.scope),
    // An index ends with `seq`, which makes this one the order of a scope's events.
    index('events_scope').on(table.scope),
    // Most events happen when they are accepted.
    index('events_happened')
      .on(table.happened_at)
      .where(sql`happened_at IS NOT NULL`),
    // Most events complete, and are not searched by status.
    index('events_unusual')
      .on(table.status)
      .where(sql`status NOT IN ('completed', 'ignored')`),
  ],
)

/**
 * Many ordinary events in a row, compressed. An event with a row in `events` counts as that row
 * says. The other columns tell a search what the pack cannot have; `scopes`, `types` and `statuses`
 * are JSON lists, or null if they would be long. The id begins with the time of `last`.
 */
export const packs = sqliteTable('packs', {
  id: integer().primaryKey(),
  /** The lowest and the highest place of its events. */
  first: integer().notNull(),
  last: integer().notNull(),
  events: integer().notNull(),
  /** When its newest event was accepted, in ms. */
  accepted_at: integer().notNull(),
  raw_bytes: integer().notNull(),
  scopes: text(),
  types: text(),
  statuses: text(),
  /** Hashes of the ids and traces, of 8 bytes; null if `pack_index` has them. */
  hashes: blob(),
  data: blob().notNull(),
  /** The answers that came beside these events, as `statistics_waiting` has them; or null. */
  told: text(),
})

/** The days, since 1970, of which the archive has packed events that have left D1. */
export const archivedDays = sqliteTable('archived_days', { day: integer().primaryKey() })

/** Hashes of the ids and traces in full packs, in order, by `packs/index-place.ts`. */
export const packIndex = sqliteTable('pack_index', {
  place: integer().primaryKey(),
  accepted_at: integer().notNull(),
  /** Ids of packs, as a JSON list: an entry has a hash and a place in this list. */
  packs: text().notNull(),
  entries: blob().notNull(),
})

/**
 * Sent batches. The sweep deletes a row once `events` has its events, and resends after `due_at`.
 */
export const queued = sqliteTable('queued', {
  id: integer().primaryKey(),
  due_at: integer().notNull(),
  attempts: integer().notNull().default(0),
  events: text().notNull(),
})

/** The condition of a partial index, without parameters, or SQLite does not use it. */
export const IS_ELSEWHERE = sql`origin <> 'scope'`

/** Events that a scope gave up on, messages of the queue, and deals that cannot be delivered. */
export const deadLetters = sqliteTable(
  'dead_letters',
  {
    id: text().primaryKey(),
    origin: text({ enum: ['scope', 'queue', 'market'] }).notNull(),
    scope: text(),
    event_id: text(),
    type: text(),
    error: text().notNull(),
    stack: text(),
    attempts: integer().notNull(),
    payload: text().notNull(),
    dead_lettered_at: integer().notNull(),
  },
  (table) => [
    unique('dead_letters_event').on(table.scope, table.event_id),
    index('dead_letters_age').on(table.dead_lettered_at, table.id),
    index('dead_letters_scope').on(table.scope, table.dead_lettered_at, table.id),
    index('dead_letters_type').on(table.type, table.dead_lettered_at, table.id),
    // Health counts letters by origin. Most are of scopes, and counted in an index by scope.
    index('dead_letters_elsewhere').on(table.scope, table.origin).where(IS_ELSEWHERE),
  ],
)

/** All scopes. `wake_at` is when the alarm is due: the sweep wakes a scope whose alarm is lost. */
export const scopes = sqliteTable(
  'scopes',
  {
    scope: text().primaryKey(),
    agent: text().notNull(),
    open: integer().notNull(),
    wake_at: integer(),
    updated_at: integer().notNull(),
    /** The start of the turn in flight, in ms. */
    turn_since: integer(),
    /** Work that crashed the scope repeatedly and is no longer started. */
    parked: integer().notNull().default(0),
    /** Spans that the scope's collector took, and those that it rejected or did not get in time. */
    spans_exported: integer().notNull().default(0),
    spans_dropped: integer().notNull().default(0),
    /** 1 if its setting learning.mode is not off; `learned_at`: the last scheduled start, in ms. */
    learns: integer().notNull().default(0),
    learned_at: integer().notNull().default(0),
    /** The model's last answer; the first failure since, their number, and the newest error. */
    model_answered_at: integer(),
    model_failing_since: integer(),
    model_failures: integer().notNull().default(0),
    model_error: text(),
    /** Failures of the deployment's model, not of one request: readiness is judged by them. */
    model_lost: integer().notNull().default(0),
    /** The last answer of the deployment's model; 0: none. Null in rows of an earlier version. */
    model_served_at: integer(),
    /** When it asks the model again, if events wait for that. */
    model_ask_at: integer(),
    /** The fields that its setting names, as JSON; null if it names none. */
    redact: text(),
  },
  (table) => [
    index('scopes_wake').on(table.wake_at),
    // Pages of health count them; most scopes have none.
    index('scopes_open')
      .on(table.open)
      .where(sql`"open" > 0`),
    index('scopes_parked')
      .on(table.parked)
      .where(sql`parked > 0`),
    // The open route of readiness reads them: there are none while the provider answers.
    index('scopes_model_failing')
      .on(table.model_failing_since)
      .where(sql`model_failing_since IS NOT NULL`),
    index('scopes_learned')
      .on(table.learned_at)
      .where(sql`learns = 1`),
  ],
)

export const keys = sqliteTable('keys', {
  id: text().primaryKey(),
  name: text().notNull(),
  roles: text({ mode: 'json' }).$type<string[]>().notNull(),
  scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
  hash: text().notNull(),
  created_at: integer().notNull(),
  teaches: integer({ mode: 'boolean' }).notNull().default(false),
  expires_at: integer(),
  /** Known to an hour: a request seldom writes. */
  used_at: integer(),
})

/** Traces of calls that name no event, such as proposals: a scope's part of one. */
export const calls = sqliteTable(
  'calls',
  {
    trace_id: text().notNull(),
    scope: text().notNull(),
    /** Begins with the time of its start, as an event's id does. */
    seq: integer().notNull(),
    agent: text().notNull(),
    /** The first entry of the scope's log that names it. */
    log_from: integer().notNull(),
    kinds: integer().notNull(),
    skills: text().notNull(),
    started_at: integer().notNull(),
    ended_at: integer().notNull(),
    status: text({ enum: ['running', 'ok', 'error'] }).notNull(),
    revision: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.trace_id, table.scope] }), index('calls_seq').on(table.seq)],
)
