import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { JsonFields } from '../../../base/json.ts'
import { approvalStatuses, type ApprovalRun } from '../../../contract/approval.ts'

/** Questions that await a person's decision. `pending` after `expires_at` means expired. */
export const approvals = sqliteTable(
  'approvals',
  {
    id: text().primaryKey(),
    scope: text().notNull(),
    kind: text({ enum: ['run', 'promotion', 'activation', 'payment', 'call', 'calls'] })
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
    edits: text({ mode: 'json' }).$type<JsonFields>(),
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
