import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { approvalStatuses, type ApprovalRun } from '../features/approvals/contract/approval.ts'
import { buckets, families } from '../features/statistics/contract/statistics.ts'
import { hookSchemes, type NewHook } from '../features/hooks/contract/hook.ts'

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
 * Sent batches. The sweep deletes a row once `events` has its events, and resends after `due_at`.
 */
export const queued = sqliteTable('queued', {
  id: integer().primaryKey(),
  due_at: integer().notNull(),
  attempts: integer().notNull().default(0),
  events: text().notNull(),
})

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
    /** When it asks the model again, if events wait for that. */
    model_ask_at: integer(),
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

const bucketOf = {
  family: text({ enum: families }).notNull(),
  bucket: text({ enum: buckets }).notNull(),
  start: integer().notNull(),
}

/** A scope's numbers by minute, hour, day and in all. `values`: numbers by label and name. */
export const statistics = sqliteTable('statistics', { ...bucketOf, scope: text().notNull(), values: text().notNull() }, (table) => [
  primaryKey({ columns: [table.family, table.bucket, table.start, table.scope] }),
])

/**
 * The sums over all scopes with a prefix, of ended buckets that did not change since. `total`:
 * numbers by name. `labels`: numbers by label and name; null if they are too many for a row.
 */
export const statisticsSums = sqliteTable(
  'statistics_sums',
  { ...bucketOf, prefix: text().notNull(), total: text().notNull(), labels: text() },
  (table) => [primaryKey({ columns: [table.family, table.bucket, table.start, table.prefix] })],
)

/** Buckets that changed since their sums, if they have any. */
export const statisticsChanges = sqliteTable('statistics_changes', bucketOf, (table) => [
  primaryKey({ columns: [table.family, table.bucket, table.start] }),
])

/** Questions that await a person's decision. `pending` after `expires_at` means expired. */
export const approvals = sqliteTable(
  'approvals',
  {
    id: text().primaryKey(),
    scope: text().notNull(),
    kind: text({ enum: ['run', 'promotion', 'activation', 'payment', 'call'] })
      .notNull()
      .default('run'),
    skill_id: text().notNull(),
    version: text().notNull(),
    manifest_hash: text().notNull(),
    inputs_hash: text().notNull(),
    inputs: text({ mode: 'json' }).$type<Record<string, unknown>>().notNull(),
    why: text().notNull(),
    requested_by: text().notNull(),
    requested_key: text(),
    self_approval: integer({ mode: 'boolean' }).notNull(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    status: text({ enum: approvalStatuses }).notNull(),
    decided_by: text(),
    decided_at: integer(),
    reason: text(),
    traceparent: text(),
    /** The resulting run, as its scope reports it. */
    run: text({ mode: 'json' }).$type<ApprovalRun>(),
  },
  (table) => [
    index('approvals_status').on(table.status, table.created_at, table.id),
    index('approvals_age').on(table.created_at, table.id),
    index('approvals_scope').on(table.scope, table.created_at, table.id),
  ],
)

/** Incoming webhooks: how each is verified, and which events it makes. */
export const hooks = sqliteTable('hooks', {
  /** The hook's name, with a part of its own where a tenant made it. */
  address: text('name').primaryKey(),
  /** A pattern, if the mapping has a template. */
  scope: text().notNull(),
  scheme: text({ enum: hookSchemes }).notNull(),
  /** The mapping from a delivery to events; its `scope` stays within the column `scope`. */
  mapping: text({ mode: 'json' }).$type<Partial<Omit<NewHook, 'scheme'>>>().notNull(),
  created_at: integer().notNull(),
})

/** Deliveries of hooks by their result. */
export const hookCounts = sqliteTable(
  'hook_counts',
  /** `hook`: its address. */
  { hook: text().notNull(), result: text().notNull(), count: integer().notNull() },
  (table) => [primaryKey({ columns: [table.hook, table.result] })],
)
