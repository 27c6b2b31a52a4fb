import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import { approvalStatuses, type ApprovalRun } from '../contract/approval.ts'
import { reflexStates, type Provenance } from '../contract/reflex.ts'
import type { ReflexMetrics } from '../contract/reflex-metrics.ts'
import { skillSharing, skillStates, type SkillProvenance, type StoredManifest } from '../contract/skill.ts'

/**
 * D1's log of events, as the scopes' outboxes replicate it. `seq` begins with the time that the event is filed under
 * (see `FILED` in `events.ts`), so that the table itself is in order of time and no list needs an index for it.
 * `revision` grows with each replicated change of an event: a late or repeated report never overwrites a newer one.
 * What an event holds beside these columns is read from `payload`, its JSON.
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
    payload: text().notNull(),
  },
  (table) => [
    // By id first: the same index finds an event whose scope is not known.
    unique('events_id_scope').on(table.id, table.scope),
    // An index ends with `seq`, which makes this one the order of a scope's events.
    index('events_scope').on(table.scope),
    // Most events end well, and nobody looks for those by their status.
    index('events_unusual')
      .on(table.status)
      .where(sql`status NOT IN ('completed', 'ignored')`),
  ],
)

/**
 * Events on their way through the queue: a row for each batch that was sent, without indexes. The sweep deletes a row once
 * `events` has all of its events, and sends what is missing again after `due_at`. `id` begins with the time of sending.
 */
export const queued = sqliteTable('queued', {
  id: integer().primaryKey(),
  due_at: integer().notNull(),
  attempts: integer().notNull().default(0),
  events: text().notNull(),
})

/** What nothing could deal with: an event that a scope gave up on, or a queue message that could not be delivered or read. */
export const deadLetters = sqliteTable(
  'dead_letters',
  {
    id: text().primaryKey(),
    origin: text({ enum: ['scope', 'queue'] }).notNull(),
    scope: text(),
    event_id: text(),
    type: text(),
    error: text().notNull(),
    stack: text(),
    attempts: integer().notNull(),
    payload: text().notNull(),
    dead_lettered_at: integer().notNull(),
  },
  (table) => [unique('dead_letters_event').on(table.scope, table.event_id), index('dead_letters_age').on(table.dead_lettered_at, table.id)],
)

/** Every scope that ever told something. `wake_at` is when its alarm is due: one long overdue has lost its alarm, and the sweep pokes it. */
export const scopes = sqliteTable(
  'scopes',
  {
    scope: text().primaryKey(),
    agent: text().notNull(),
    open: integer().notNull(),
    wake_at: integer(),
    updated_at: integer().notNull(),
    /** Pieces of work that took the scope down too often and are not begun again. */
    parked: integer().notNull().default(0),
  },
  (table) => [index('scopes_wake').on(table.wake_at)],
)

export const keys = sqliteTable('keys', {
  id: text().primaryKey(),
  name: text().notNull(),
  roles: text({ mode: 'json' }).$type<string[]>().notNull(),
  scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
  hash: text().notNull(),
  created_at: integer().notNull(),
})

/** `owner` is a name, for people; `owner_id` is whose it is. */
export const reflexes = sqliteTable(
  'reflexes',
  {
    id: text().primaryKey(),
    owner: text().notNull(),
    owner_id: text().notNull(),
    scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [index('reflexes_owner').on(table.owner, table.id)],
)

/** Of a version only its state ever changes; `state_at` is when it last did. */
export const reflexVersions = sqliteTable(
  'reflex_versions',
  {
    id: text().notNull(),
    version: integer().notNull(),
    hash: text().notNull(),
    code: text().notNull(),
    description: text().notNull(),
    state: text({ enum: reflexStates }).notNull(),
    state_reason: text(),
    state_at: integer().notNull(),
    provenance: text({ mode: 'json' }).$type<Provenance>().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.id, table.version] }), index('reflex_versions_state').on(table.id, table.state, table.version)],
)

/** Which scopes have a reflex in their chains: they are told when it changes. */
export const reflexUses = sqliteTable('reflex_uses', { reflex_id: text().notNull(), scope: text().notNull() }, (table) => [
  primaryKey({ columns: [table.reflex_id, table.scope] }),
  index('reflex_uses_scope').on(table.scope),
])

/** What each scope has told of each version, as sums since it first ran there. */
export const reflexMetrics = sqliteTable(
  'reflex_metrics',
  {
    reflex_id: text().notNull(),
    version: integer().notNull(),
    scope: text().notNull(),
    metrics: text({ mode: 'json' }).$type<ReflexMetrics>().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.reflex_id, table.version, table.scope] })],
)

/** `owner` is a name, for people; `owner_id` is whose it is. */
export const skills = sqliteTable(
  'skills',
  {
    id: text().primaryKey(),
    owner: text().notNull(),
    owner_id: text().notNull(),
    scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [index('skills_owner').on(table.owner_id)],
)

/**
 * The patterns of `skills.scopes`, a row each, so that what a scope may run or a key may read is found
 * without reading the skills of others. `prefix` is the pattern up to its first `*`.
 */
export const skillScopes = sqliteTable(
  'skill_scopes',
  { skill_id: text().notNull(), pattern: text().notNull(), prefix: text().notNull() },
  (table) => [
    primaryKey({ columns: [table.skill_id, table.pattern] }),
    index('skill_scopes_prefix').on(table.prefix, table.pattern, table.skill_id),
    index('skill_scopes_pattern').on(table.pattern, table.skill_id),
  ],
)

/**
 * Of a version only its state ever changes. `precedence` sorts as semantic versions rank. `revision` counts, over all skills, how often a version became
 * active or ceased to be: it is that of its own last change, and 0 before the first.
 */
export const skillVersions = sqliteTable(
  'skill_versions',
  {
    id: text().notNull(),
    version: text().notNull(),
    precedence: text().notNull(),
    manifest: text({ mode: 'json' }).$type<StoredManifest>().notNull(),
    hash: text().notNull(),
    state: text({ enum: skillStates }).notNull(),
    state_reason: text(),
    state_at: integer().notNull(),
    revision: integer().notNull().default(0),
    provenance: text({ mode: 'json' }).$type<SkillProvenance>().notNull(),
    created_at: integer().notNull(),
    /** The manifest's own `scope`: who may read this version. */
    sharing: text({ enum: skillSharing }).notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.id, table.version] }),
    index('skill_versions_changes').on(table.id, table.revision, table.version),
    index('skill_versions_precedence').on(table.id, table.precedence),
    index('skill_versions_state').on(table.id, table.state, table.precedence),
    index('skill_versions_revision').on(table.revision),
  ],
)

/** What a person has to decide before a skill runs. `pending` beyond `expires_at` is as good as expired, whether or not that is written yet. */
export const approvals = sqliteTable(
  'approvals',
  {
    id: text().primaryKey(),
    scope: text().notNull(),
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
    /** What it led to, as its scope tells it. */
    run: text({ mode: 'json' }).$type<ApprovalRun>(),
  },
  (table) => [
    index('approvals_status').on(table.status, table.created_at, table.id),
    index('approvals_age').on(table.created_at, table.id),
  ],
)
