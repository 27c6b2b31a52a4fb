import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { hookSchemes, type NewHook } from '../contract/hook.ts'

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
