import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { CiReport } from '../../../contract/reports/skill-test.ts'

/**
 * Promotions of skills to environments, and who decided on them. Rows are never deleted: they are
 * the audit trail. `status` is `pending` also after `expires_at`.
 */
export const promotions = sqliteTable(
  'promotions',
  {
    id: text().primaryKey(),
    skill_id: text().notNull(),
    version: text().notNull(),
    hash: text().notNull(),
    from_env: text().notNull(),
    to_env: text({ mode: 'json' }).$type<string[]>().notNull(),
    status: text({ enum: ['failed', 'pending', 'approved', 'rejected'] }).notNull(),
    reports: text({ mode: 'json' }).$type<Record<string, CiReport>>().notNull(),
    requested_by: text().notNull(),
    requested_key: text().notNull(),
    request_reason: text(),
    created_at: integer().notNull(),
    expires_at: integer().notNull(),
    decided_by: text(),
    decided_key: text(),
    decided_at: integer(),
    reason: text(),
  },
  (table) => [
    index('promotions_skill').on(table.skill_id, table.version, table.status),
    index('promotions_age').on(table.created_at, table.id),
  ],
)

/** Numbers of skills that clients reported, a row for each skill in a window of a client. */
export const telemetry = sqliteTable(
  'telemetry',
  {
    key_id: text().notNull(),
    client: text().notNull(),
    window_start: integer().notNull(),
    skill_id: text().notNull(),
    window_end: integer().notNull(),
    calls: integer().notNull(),
    success: integer().notNull(),
    delta_cost: real(),
    delta_p95: real(),
  },
  (table) => [
    primaryKey({ columns: [table.key_id, table.client, table.window_start, table.skill_id] }),
    index('telemetry_skill').on(table.skill_id, table.window_start),
    index('telemetry_age').on(table.window_end),
  ],
)

/** This deployment as a client of a control plane: one row. */
export const controlPlane = sqliteTable('control_plane', {
  id: text({ enum: ['client'] }).primaryKey(),
  /** The name of this deployment in its reports. */
  client: text().notNull(),
  /** The control plane and project that `revision` belongs to. */
  feed: text().notNull(),
  revision: integer().notNull(),
  synced_at: integer(),
  failing_since: integer(),
  error: text(),
  /** Versions that this deployment cannot take, and why. */
  skipped: text({ mode: 'json' }).$type<Record<string, string>>().notNull(),
  /** The end of the last window that was reported. */
  reported_until: integer(),
})
