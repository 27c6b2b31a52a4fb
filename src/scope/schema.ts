import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'

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

/** The journal of effects: a row is written before an effect begins and completed after it ended (G8). */
export const effects = sqliteTable(
  'effects',
  {
    id: text().primaryKey(),
    turn_id: text(),
    tool: text().notNull(),
    arguments_hash: text().notNull(),
    idempotence_key: text(),
    status: text({ enum: ['started', 'ok', 'failed', 'unknown'] }).notNull(),
    output: text(),
    error: text(),
    /** The log's head for this effect, so that its end can be recorded after a crash. */
    head: text().notNull(),
    started_at: integer().notNull(),
    ended_at: integer(),
  },
  (table) => [
    unique('effects_key').on(table.tool, table.idempotence_key),
    index('effects_turn').on(table.turn_id),
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

/** The versions in the chain, as D1 had them when the scope last looked. `program` is a ReflexVersion as JSON. */
export const programs = sqliteTable(
  'programs',
  { id: text().notNull(), version: integer().notNull(), program: text().notNull() },
  (table) => [primaryKey({ columns: [table.id, table.version] })],
)

/** Actions of reflexes that take the effect lane, or carry a key: a row is written with the event's acceptance and ended with its settlement. */
export const actions = sqliteTable(
  'actions',
  {
    id: text().primaryKey(),
    seq: integer().notNull(),
    reflex_id: text().notNull(),
    version: integer().notNull(),
    idempotence_key: text(),
    /** What is needed to carry it out after a crash: the action, the log's head and place. */
    task: text().notNull(),
    attempts: integer().notNull().default(0),
    at: integer().notNull(),
    ended_at: integer(),
  },
  (table) => [
    index('actions_key')
      .on(table.reflex_id, table.idempotence_key)
      .where(sql`idempotence_key IS NOT NULL`),
    index('actions_waiting')
      .on(table.at)
      .where(sql`ended_at IS NULL`),
  ],
)

/** What reflexes in shadow would have done about events that nobody has decided on yet. */
export const trials = sqliteTable(
  'trials',
  { seq: integer().notNull(), reflex_id: text().notNull(), version: integer().notNull(), action: text().notNull() },
  (table) => [primaryKey({ columns: [table.seq, table.reflex_id, table.version] })],
)

/** The active skills of this scope, as D1 had them when it was last read. `manifest` is JSON. */
export const heldSkills = sqliteTable(
  'held_skills',
  { id: text().notNull(), version: text().notNull(), hash: text().notNull(), manifest: text().notNull() },
  (table) => [primaryKey({ columns: [table.id, table.version] })],
)

/** Runs of skills: a row is written before the first step, and ended with the run's result. `request` is all that is needed to go on after a crash. */
export const skillRuns = sqliteTable(
  'skill_runs',
  {
    run_id: text().primaryKey(),
    skill_id: text().notNull(),
    version: text().notNull(),
    /** The turn, reflex or approval that it was for: the same one asking again is given the same run. */
    cause: text().notNull(),
    inputs_hash: text().notNull(),
    request: text().notNull(),
    status: text().notNull(),
    result: text(),
    started_at: integer().notNull(),
    ended_at: integer(),
  },
  (table) => [
    index('skill_runs_skill').on(table.skill_id, table.started_at),
    index('skill_runs_cause').on(table.cause),
    index('skill_runs_open')
      .on(table.started_at)
      .where(sql`ended_at IS NULL`),
  ],
)

/** The journal of a run's steps: written before a step's tool is called, and when it has ended. */
export const skillSteps = sqliteTable(
  'skill_steps',
  {
    run_id: text().notNull(),
    phase: text({ enum: ['step', 'compensation'] }).notNull(),
    place: integer().notNull(),
    begun: text(),
    ended: text(),
  },
  (table) => [primaryKey({ columns: [table.run_id, table.phase, table.place] })],
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
  status: text({ enum: ['waiting', 'running'] }).notNull(),
  /** Whether D1 has been asked. */
  told: integer().notNull().default(0),
  expires_at: integer().notNull(),
  parked_at: integer().notNull(),
})
