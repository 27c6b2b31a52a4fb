import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { JsonFields } from '../../base/json.ts'
import { artifactKinds, stages, type ArtifactHead, type ArtifactKind } from '../../contract/artifact.ts'
import type { Certificate } from '../../contract/certificate.ts'
import type { ReflexMetrics } from '../../contract/reports/reflex-report.ts'
import type { CiReport } from '../../contract/reports/skill-test.ts'
import { skillSharing } from '../../contract/skill.ts'

const kind = () => text({ enum: Object.keys(artifactKinds) as [ArtifactKind, ...ArtifactKind[]] }).notNull()

/** Reflexes, skills. `owner` is a display name; `owner_id` identifies the owner. */
export const artifacts = sqliteTable(
  'artifacts',
  {
    kind: kind(),
    id: text().notNull(),
    owner: text().notNull(),
    owner_id: text().notNull(),
    scopes: text({ mode: 'json' }).$type<string[]>().notNull(),
    created_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.id] }), index('artifacts_owner').on(table.kind, table.owner_id)],
)

/**
 * The patterns of `artifacts.scopes`, one row each, so that lookups read only matching rows.
 * `prefix` is the pattern up to its first `*`.
 */
export const artifactPatterns = sqliteTable(
  'artifact_patterns',
  { kind: kind(), id: text().notNull(), pattern: text().notNull(), prefix: text().notNull() },
  (table) => [
    primaryKey({ columns: [table.kind, table.id, table.pattern] }),
    index('artifact_patterns_prefix').on(table.prefix, table.pattern),
    index('artifact_patterns_pattern').on(table.pattern, table.kind, table.id),
  ],
)

/** `precedence` sorts as versions do. `revision`: the last change, over all artifacts. */
export const artifactVersions = sqliteTable(
  'artifact_versions',
  {
    kind: kind(),
    id: text().notNull(),
    version: text().notNull(),
    precedence: text().notNull(),
    content: text().notNull(),
    hash: text().notNull(),
    description: text().notNull(),
    state: text({ enum: stages }).notNull(),
    state_reason: text(),
    state_at: integer().notNull(),
    revision: integer().notNull(),
    provenance: text({ mode: 'json' }).$type<ArtifactHead['provenance']>().notNull(),
    created_at: integer().notNull(),
    /** The keys that may read this version. */
    sharing: text({ enum: skillSharing }).notNull(),
    by_proof: integer({ mode: 'boolean' }).notNull().default(false),
    /** It was listed for sale, or is a bought copy: only its owner and admins read its content. */
    sealed: integer({ mode: 'boolean' }).notNull().default(false),
    /** The hash of what runs, by which a copy in other words is known. Empty: unknown. */
    program: text().notNull().default(''),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.id, table.version] }),
    index('artifact_versions_changes').on(table.kind, table.id, table.revision, table.version),
    index('artifact_versions_precedence').on(table.kind, table.id, table.precedence),
    index('artifact_versions_state').on(table.kind, table.id, table.state, table.precedence),
    index('artifact_versions_revision').on(table.revision),
    index('artifact_versions_program').on(table.program),
  ],
)

/** The scopes that have a reflex in their chain: they are notified when it changes. */
export const reflexUses = sqliteTable('reflex_uses', { reflex_id: text().notNull(), scope: text().notNull() }, (table) => [
  primaryKey({ columns: [table.reflex_id, table.scope] }),
  index('reflex_uses_scope').on(table.scope),
])

/** A scope's evidence for each version, as of its last report. */
export const certificates = sqliteTable(
  'certificates',
  {
    reflex_id: text().notNull(),
    version: integer().notNull(),
    scope: text().notNull(),
    certificate: text({ mode: 'json' }).$type<Certificate>().notNull(),
    updated_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.reflex_id, table.version, table.scope] })],
)

/** A scope's counters of each version, since it first ran there. */
export const reflexMetrics = sqliteTable(
  'reflex_metrics',
  {
    reflex_id: text().notNull(),
    version: integer().notNull(),
    scope: text().notNull(),
    metrics: text({ mode: 'json' }).$type<ReflexMetrics>().notNull(),
    updated_at: integer().notNull(),
    /** The last entry of the scope's log that they include. */
    seq: integer().notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.reflex_id, table.version, table.scope] })],
)

/**
 * The counters of many scopes, as `statistics_packs` has statistics: `scopes` has `{metrics, at}`
 * of each. A row of `reflex_metrics` hides the counters of its scope. The table has rowids, as
 * `statistics_packs` has.
 */
export const reflexMetricsPacks = sqliteTable(
  'reflex_metrics_packs',
  {
    reflex_id: text().notNull(),
    version: integer().notNull(),
    part: text().notNull(),
    revision: integer().notNull(),
    updated_at: integer().notNull(),
    scopes: text().notNull(),
    seqs: text().notNull(),
  },
  (table) => [primaryKey({ columns: [table.reflex_id, table.version, table.part] })],
)

/** The latest test of each version of a skill. */
export const skillTests = sqliteTable(
  'skill_tests',
  {
    skill_id: text().notNull(),
    version: text().notNull(),
    hash: text().notNull(),
    passed: integer({ mode: 'boolean' }).notNull(),
    failed_in_a_row: integer().notNull(),
    report: text({ mode: 'json' }).$type<CiReport>().notNull(),
    by: text().notNull(),
    tested_at: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.skill_id, table.version, table.hash] })],
)

/** Cases that were sent for a skill. Its manifests name them. */
export const skillCases = sqliteTable(
  'skill_cases',
  { skill_id: text().notNull(), name: text().notNull(), content: text({ mode: 'json' }).$type<JsonFields>().notNull() },
  (table) => [primaryKey({ columns: [table.skill_id, table.name] })],
)

/**
 * Rights to run versions, as the Ledger delivered them: a row for each pattern of scopes. A row
 * that is no longer `in_use` stays for a year: it removes the version from the copies of scopes.
 */
export const entitlements = sqliteTable(
  'entitlements',
  {
    deal_id: text().notNull(),
    kind: kind(),
    id: text().notNull(),
    version: text().notNull(),
    pattern: text().notNull(),
    /** The pattern up to its first `*`. */
    prefix: text().notNull(),
    hash: text().notNull(),
    expires_at: integer(),
    /** Actions that each scope may take. */
    fires: integer(),
    metered: integer({ mode: 'boolean' }).notNull(),
    in_use: integer({ mode: 'boolean' }).notNull(),
    /** In ms, since when it is not in use. */
    ended_at: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.deal_id, table.kind, table.id, table.version, table.pattern] }),
    index('entitlements_artifact').on(table.kind, table.id, table.in_use),
    index('entitlements_prefix').on(table.kind, table.prefix),
    index('entitlements_ended')
      .on(table.ended_at)
      .where(sql`in_use = 0`),
  ],
)
