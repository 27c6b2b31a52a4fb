import { sql } from 'drizzle-orm'
import { blob, index, integer, primaryKey, sqliteTable, text, unique, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** The inbox. The columns up to `ended_at` are the same as in core's EventStore. */
export const events = sqliteTable(
  'events',
  {
    seq: integer().primaryKey(),
    id: text().notNull(),
    scope: text().notNull(),
    type: text().notNull(),
    source: text().notNull(),
    timestamp: text().notNull(),
    trace_id: text().notNull(),
    payload: text().notNull(),
    status: text().notNull(),
    attempts: integer().notNull().default(0),
    error: text(),
    due_at: integer().notNull().default(0),
    lease_until: integer(),
    ack_token: text(),
    accepted_at: integer().notNull(),
    /** Place in the log of the context that reflexes saw. */
    chain_seq: integer(),
    ended_at: integer(),
    /** 1 for the DecisionContext's events, unless `context_floor` in `state` is above them. */
    in_context: integer().notNull().default(0),
    outcome: text(),
    /** A JSON array: ids of the turns that considered the event without success. */
    turns: text(),
    /** Number of turns on the event that a crash or reset interrupted. */
    interruptions: integer().notNull().default(0),
    /** Resource that the event waits for: `budget` or `model`. */
    parked: text(),
    parked_at: integer(),
    /** 1 if somebody sent it; null if the scope or another scope made it, or before the column. */
    sent: integer(),
  },
  (table) => [
    unique('events_id').on(table.id),
    index('events_claim')
      .on(table.seq, table.due_at)
      .where(sql`status = 'pending'`),
    index('events_delayed')
      .on(table.due_at)
      .where(sql`status = 'pending' AND due_at > 0`),
    index('events_lease')
      .on(table.ack_token, table.lease_until)
      .where(sql`status = 'processing'`),
  ],
)

/**
 * The log: a row per unit of work. `entries` is a JSON array, `seq` the number of the first entry.
 * `chain` and `head` link the row with the row before, if a feature does.
 */
export const log = sqliteTable('log', {
  seq: integer().primaryKey(),
  at: integer().notNull(),
  counts: text(),
  entries: text().notNull(),
  chain: blob(),
  head: text(),
})

/** Values that log entries name by their hash, each stored once: settings, messages of prompts. */
export const parts = sqliteTable('parts', { hash: text().primaryKey(), at: integer().notNull(), value: text().notNull() })

/** Small values: the object's name, settings, counters, scratch, the running turn. */
export const state = sqliteTable('state', { key: text().primaryKey(), value: text().notNull() })

/** The journal of effects and plan steps: a row is written before and after each tool call (G8). */
export const effects = sqliteTable(
  'effects',
  {
    /** The id of a turn or action, `run:ID`, or `call:ID` for an operator's call. */
    owner: text().notNull(),
    phase: text({ enum: ['call', 'step', 'compensation'] }).notNull(),
    place: integer().notNull(),
    /** Null for a step that did not call its tool, and for an act that calls none. */
    tool: text(),
    /** Null if the call is not looked up by its arguments. */
    arguments_hash: text(),
    idempotence_key: text(),
    status: text().notNull(),
    output: text(),
    error: text(),
    /** The step's end as JSON, without the output. */
    step: text(),
    /** The first log entry, whose head the final entry reuses after a crash. */
    log_seq: integer(),
    started_at: integer().notNull(),
    ended_at: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.owner, table.phase, table.place] }),
    uniqueIndex('effects_key')
      .on(table.tool, table.idempotence_key)
      .where(sql`idempotence_key IS NOT NULL`),
    index('effects_open')
      .on(table.started_at)
      .where(sql`status = 'started'`),
  ],
)

/** Crash counts of work, and its parking time. `*` is all work of the kind. */
export const guard = sqliteTable(
  'guard',
  {
    kind: text().notNull(),
    id: text().notNull(),
    deaths: integer().notNull(),
    reason: text().notNull(),
    at: integer().notNull(),
    parked_at: integer(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.id] })],
)

export const timers = sqliteTable('timers', {
  name: text().primaryKey(),
  schedule: text().notNull(),
  /** Origin of an `every_s` timer's ticks. */
  set_at: integer().notNull(),
  next_at: integer().notNull(),
  fired: integer().notNull().default(0),
})

/** Used tickets until their expiry, so that each admits once. */
export const usedTickets = sqliteTable('used_tickets', { nonce: text().primaryKey(), expires_at: integer().notNull() })

/** Artifacts that this scope may use, as last read from D1: `artifact` is an Artifact as JSON. */
export const artifacts = sqliteTable(
  'artifacts',
  { kind: text().notNull(), id: text().notNull(), version: text().notNull(), artifact: text().notNull() },
  (table) => [primaryKey({ columns: [table.kind, table.id, table.version] })],
)

/** Durable background work: a row is deleted in the unit that records the job's result. */
export const jobs = sqliteTable('jobs', {
  seq: integer().primaryKey(),
  kind: text({
    enum: ['action', 'plan', 'run', 'approved-run', 'approved-payment', 'decision', 'audit', 'dispute', 'learn-again', 'notice'],
  }).notNull(),
  /** Unique per kind. */
  key: text().notNull(),
  payload: text().notNull(),
  /** A JSON array; jobs that share a lock run one after the other. */
  locks: text().notNull(),
  /** Attempts, except those that the object survived. */
  attempts: integer().notNull(),
  due_at: integer().notNull().default(0),
})

/** Keys of executed reflex actions. `effect` is the tool call whose undo releases the key. */
export const actionKeys = sqliteTable(
  'action_keys',
  { reflex_id: text().notNull(), idempotence_key: text().notNull(), effect: text(), at: integer().notNull() },
  (table) => [primaryKey({ columns: [table.reflex_id, table.idempotence_key] })],
)

/** Shadow actions on events without a decision yet. */
export const trials = sqliteTable(
  'trials',
  { seq: integer().notNull(), reflex_id: text().notNull(), version: integer().notNull(), action: text().notNull() },
  (table) => [primaryKey({ columns: [table.seq, table.reflex_id, table.version] })],
)

/** Evidence for versions of reflexes; `certificate` is JSON. */
export const certificates = sqliteTable(
  'certificates',
  { reflex_id: text().notNull(), version: integer().notNull(), certificate: text().notNull(), issued_at: integer().notNull() },
  (table) => [primaryKey({ columns: [table.reflex_id, table.version] })],
)

/** Skill runs, inserted before the first step. A job holds the state to resume from. */
export const skillRuns = sqliteTable(
  'skill_runs',
  {
    /** The turn, action, approval or call that asked: a repeated request gets the same run. */
    cause: text().notNull(),
    run_id: text().notNull(),
    skill_id: text().notNull(),
    inputs_hash: text().notNull(),
    status: text().notNull(),
    result: text(),
    started_at: integer().notNull(),
    ended_at: integer(),
  },
  (table) => [primaryKey({ columns: [table.cause, table.run_id] }), index('skill_runs_skill').on(table.skill_id, table.started_at)],
)

/** The last successful outputs under an idempotency key. */
export const skillOutputs = sqliteTable('skill_outputs', {
  idempotence_key: text().primaryKey(),
  outputs: text().notNull(),
  at: integer().notNull(),
})

/** Keys of deleted journal rows. `output` is null if it was too long. */
export const doneKeys = sqliteTable(
  'done_keys',
  { hash: text().primaryKey(), output: text(), output_bytes: integer().notNull(), at: integer().notNull() },
  (table) => [index('done_keys_age').on(table.at)],
)

/** Data for D1 other than events; `value` is JSON. A row is deleted once D1 has it. */
export const outbox = sqliteTable('outbox', { topic: text().notNull(), key: text().notNull(), value: text().notNull() }, (table) => [
  primaryKey({ columns: [table.topic, table.key] }),
])

/**
 * Manifest of the archive. `archived_at` is null from before the first write of a file until both
 * formats have arrived; the rows of the file are deleted in the same transaction.
 */
export const archiveFiles = sqliteTable(
  'archive_files',
  {
    number: integer().primaryKey(),
    kind: text({ enum: ['log', 'events', 'parts'] }).notNull(),
    day: text().notNull(),
    first_seq: integer(),
    last_seq: integer(),
    rows: integer(),
    /** A JSON array: format, bytes and hash of each file. */
    files: text(),
    /** Hashes of the ids of events, of the log's traces, or of the hashes of parts. */
    ids: text(),
    archived_at: integer(),
  },
  (table) => [index('archive_files_order').on(table.kind, table.last_seq)],
)

/** Runs that wait for a person's decision in D1. `run` holds all that the run needs. */
export const parkedRuns = sqliteTable('parked_runs', {
  approval_id: text().primaryKey(),
  run: text().notNull(),
  expires_at: integer().notNull(),
  parked_at: integer().notNull(),
})
