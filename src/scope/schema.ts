import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique, uniqueIndex } from 'drizzle-orm/sqlite-core'

/**
 * The inbox: the columns up to `ended_at` are those of core's EventStore. `in_context` marks the DecisionContext's events, `revision` grows with
 * each change, from the time of acceptance on, so that an id that comes again after it was forgotten is newer than what D1 has of it; `told` is the last revision that D1 has: the outbox is the rows where the two differ. `turns` are the ids, a JSON array, of
 * those that considered the event and did not end well, `interruptions` how often the object died or was reset during one. `parked` is what it waits
 * for beside its time (`budget`, `model`), `parked_at` since when. `chain_seq`
 * is where the log has what reflexes saw of the event.
 */
export const events = sqliteTable(
  'events',
  {
    seq: integer().primaryKey({ autoIncrement: true }),
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
    chain_seq: integer(),
    ended_at: integer(),
    in_context: integer().notNull().default(0),
    outcome: text(),
    turns: text(),
    interruptions: integer().notNull().default(0),
    parked: text(),
    parked_at: integer(),
    revision: integer().notNull().default(1),
    told: integer().notNull().default(0),
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
    index('events_context')
      .on(table.seq)
      .where(sql`in_context = 1`),
    index('events_outbox')
      .on(table.seq)
      .where(sql`told < revision`),
  ],
)

/** The append-only record of what the scope saw, decided and did. `entry` is the whole entry as JSON. */
export const log = sqliteTable('log', {
  seq: integer().primaryKey(),
  at: integer().notNull(),
  kind: text().notNull(),
  entry: text().notNull(),
})

/** Small values that the object must find again: its name, settings, counters, scratch, the turn in flight. */
export const state = sqliteTable('state', { key: text().primaryKey(), value: text().notNull() })

/**
 * The journal of effects and of the steps of plans: a row is written before a tool is called and
 * completed after it ended (G8).
 */
export const effects = sqliteTable(
  'effects',
  {
    /** A turn, a reflex's action, a run (`run:ID`) or an operator's call (`call:ID`). */
    owner: text().notNull(),
    phase: text({ enum: ['call', 'step', 'compensation'] }).notNull(),
    place: integer().notNull(),
    /** Null for a step that ended without calling its tool. */
    tool: text(),
    /** Null where the call is not looked up by its arguments. */
    arguments_hash: text(),
    idempotence_key: text(),
    status: text().notNull(),
    output: text(),
    error: text(),
    /** The end of the step that it was, without the output, as JSON. */
    step: text(),
    /** The log entry of its beginning, whose head the entry of its end takes over after a crash. */
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

/** Work that took the object down, how often, and since when it is parked. `id` names it within its kind; `*` is all work of the kind that is done together. */
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
  /** The grid of an `every_s` timer starts here. */
  set_at: integer().notNull(),
  next_at: integer().notNull(),
  fired: integer().notNull().default(0),
})

/** Tickets that were used, until they would have expired anyway: a ticket admits once. */
export const usedTickets = sqliteTable('used_tickets', { nonce: text().primaryKey(), expires_at: integer().notNull() })

/** The artifacts that this scope may use, as D1 last had them: `artifact` is an Artifact as JSON. */
export const artifacts = sqliteTable(
  'artifacts',
  { kind: text().notNull(), id: text().notNull(), version: text().notNull(), artifact: text().notNull() },
  (table) => [primaryKey({ columns: [table.kind, table.id, table.version] })],
)

/** Durable background work: a row is deleted in the unit that records the job's result. */
export const jobs = sqliteTable('jobs', {
  seq: integer().primaryKey(),
  kind: text({ enum: ['action', 'plan', 'run', 'approved-run'] }).notNull(),
  /** Names the job within its kind. */
  key: text().notNull(),
  payload: text().notNull(),
  /** A JSON array: jobs that share a lock run one after the other. */
  locks: text().notNull(),
  /** How often it was begun, but for beginnings that the object survived. */
  attempts: integer().notNull(),
  due_at: integer().notNull().default(0),
})

/** Idempotency keys of actions that reflexes carried out. `effect` is the tool call that an undo releases. */
export const actionKeys = sqliteTable(
  'action_keys',
  { reflex_id: text().notNull(), idempotence_key: text().notNull(), effect: text(), at: integer().notNull() },
  (table) => [primaryKey({ columns: [table.reflex_id, table.idempotence_key] })],
)

/** What reflexes in shadow would have done about events that nobody has decided on yet. */
export const trials = sqliteTable(
  'trials',
  { seq: integer().notNull(), reflex_id: text().notNull(), version: integer().notNull(), action: text().notNull() },
  (table) => [primaryKey({ columns: [table.seq, table.reflex_id, table.version] })],
)

/** Runs of skills: a row is written before the first step, and ended with the run's result. Until then its job has all that it is resumed from. */
export const skillRuns = sqliteTable(
  'skill_runs',
  {
    /** The turn, action, approval or call that it was for: the same one asking again gets the same run. */
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

/** The last good outputs under an idempotency key. */
export const skillOutputs = sqliteTable('skill_outputs', {
  idempotence_key: text().primaryKey(),
  outputs: text().notNull(),
  at: integer().notNull(),
})

/** What was done under a key and has left the journal: the key is known for longer than the rest. `output` is null where it is too long to be kept. */
export const doneKeys = sqliteTable(
  'done_keys',
  { hash: text().primaryKey(), output: text(), output_bytes: integer().notNull(), at: integer().notNull() },
  (table) => [index('done_keys_age').on(table.at)],
)

/** What became of approved runs, until D1 has been told. `run` is an ApprovalRun as JSON. */
export const runReports = sqliteTable('run_reports', { approval_id: text().primaryKey(), run: text().notNull() })

/** Runs that wait for a person's decision, which is taken in D1. `run` is all that is run then. */
export const parkedRuns = sqliteTable('parked_runs', {
  approval_id: text().primaryKey(),
  run: text().notNull(),
  /** Whether D1 has been asked. */
  told: integer().notNull().default(0),
  expires_at: integer().notNull(),
  parked_at: integer().notNull(),
})
