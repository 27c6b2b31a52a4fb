import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'

/** A row for each blocked address or network and scope. */
export const blocks = sqliteTable(
  'blocks',
  {
    scope: text().notNull(),
    address: text().notNull(),
    reason: text().notNull(),
    blocked_at: integer().notNull(),
    id: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.scope, table.address] }),
    unique('blocks_id').on(table.id),
    index('blocks_age').on(table.blocked_at, table.id),
  ],
)

/** Incidents that the guard opened; a ticket system may hold them as well. */
export const incidents = sqliteTable(
  'incidents',
  {
    scope: text().notNull(),
    id: text().notNull(),
    title: text().notNull(),
    details: text().notNull(),
    evidence: text({ mode: 'json' }).$type<string[]>().notNull(),
    opened_at: integer().notNull(),
    closed_at: integer(),
  },
  (table) => [
    primaryKey({ columns: [table.scope, table.id] }),
    index('incidents_id').on(table.id),
    index('incidents_age').on(table.opened_at, table.id),
    index('incidents_closed')
      .on(table.closed_at)
      .where(sql`closed_at IS NOT NULL`),
  ],
)
