import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { runStatuses, type StoredRun } from '../contract/runs.ts'

type Findings = Pick<StoredRun, 'candidates' | 'rejected' | 'reach'>
type Column = 'run_id' | 'scope' | 'status' | 'started_at' | 'ended_at'

/** Runs of the learners, as each last reported. A higher `revision` overwrites a lower one. */
export const learnRuns = sqliteTable(
  'learn_runs',
  {
    id: text().primaryKey(),
    scope: text().notNull(),
    status: text({ enum: runStatuses }).notNull(),
    started_at: integer().notNull(),
    ended_at: integer(),
    revision: integer().notNull(),
    summary: text({ mode: 'json' }).$type<Omit<StoredRun, Column | keyof Findings>>().notNull(),
    findings: text({ mode: 'json' }).$type<Findings>().notNull(),
  },
  (table) => [
    index('learn_runs_age').on(table.started_at, table.id),
    index('learn_runs_scope').on(table.scope, table.started_at, table.id),
  ],
)
